#include "runtime/device/simulated/exec/families/addressing.h"

#include <algorithm>

namespace smt::runtime::device::simulated {
namespace {

Space stated_space(const ptx::Instruction& s) {
    if (s.has(Modifier::kGlobal)) return Space::kGlobal;
    if (s.has(Modifier::kShared) || s.has(Modifier::kSharedCta) || s.has(Modifier::kSharedCluster))
        return Space::kShared;
    if (s.has(Modifier::kLocal)) return Space::kLocal;
    if (s.has(Modifier::kConst)) return Space::kConstant;
    if (s.has(Modifier::kParam) || s.has(Modifier::kParamEntry) || s.has(Modifier::kParamFunc))
        return Space::kParameter;
    return Space::kNone;
}

struct Bounds {
    uint64_t least = ~0ull;
    uint64_t most = 0;
    uint64_t bits = 0;
};

Bounds bounds_of(const uint64_t* addresses) {
    Bounds bounds;
    for (int i = 0; i < kLanes; ++i) {
        bounds.least = std::min(bounds.least, addresses[i]);
        bounds.most = std::max(bounds.most, addresses[i]);
        bounds.bits |= addresses[i];
    }
    return bounds;
}

bool all_global(Execution& x, const Bounds& bounds, uint32_t bytes) {
    if ((bounds.bits & (bytes - 1)) != 0) return false;
    const Memory::Range& range = x.cta->range_of(bounds.least);
    return range.state == Memory::State::kLive && range.holds(bounds.least, bytes) &&
           range.holds(bounds.most, bytes);
}

bool all_shared(const Execution& x, const Bounds& bounds, uint32_t bytes) {
    const uint64_t size = x.cta->shared.size();
    return (bounds.bits & (bytes - 1)) == 0 && bounds.least >= x.cta->shared_begin && bounds.most < size &&
           bytes <= size - bounds.most;
}

template <class F>
void one_by_one(const Execution& x, Located& where, F pointer) {
    where.ok = true;
    for_lanes(x.mask, [&](int lane) {
        if (!where.ok) return;
        where.pointers[lane] = pointer(lane);
        where.ok = where.pointers[lane] != nullptr;
    });
}

void locate_global(Execution& x, const uint64_t* addresses, uint32_t bytes, Located& where, Space space) {
    if (all_global(x, bounds_of(addresses), bytes)) {
        where.ok = where.together = true;
        where.base = 0;
    } else {
        one_by_one(x, where, [&](int lane) { return x.cta->global(x, lane, addresses[lane], bytes, space); });
    }
    x.step.transactions = count_sectors(addresses, x.mask);
}

void locate_shared(Execution& x, const uint64_t* addresses, uint32_t bytes, Located& where) {
    if (all_shared(x, bounds_of(addresses), bytes)) {
        where.ok = where.together = true;
        where.base = reinterpret_cast<uint64_t>(x.cta->shared.data());
    } else {
        one_by_one(x, where, [&](int lane) { return x.cta->shared_at(x, lane, addresses[lane], bytes); });
    }
    x.step.transactions = count_passes(addresses, x.mask, bytes);
}

void locate_generic(Execution& x, uint64_t* addresses, uint32_t bytes, Located& where) {
    const Bounds bounds = bounds_of(addresses);
    if (bounds.most < kSharedWindow) {
        x.step.space = Space::kGlobal;
        return locate_global(x, addresses, bytes, where, Space::kGlobal);
    }
    if (in_window(bounds.least, kSharedWindow) && in_window(bounds.most, kSharedWindow)) {
        x.step.space = Space::kShared;
        for (int i = 0; i < kLanes; ++i) addresses[i] -= kSharedWindow;
        return locate_shared(x, addresses, bytes, where);
    }
    Space space = Space::kGlobal;
    one_by_one(x, where,
               [&](int lane) { return x.cta->generic_at(x, lane, addresses[lane], bytes, &space); });
    x.step.space = space;
    x.step.transactions = space == Space::kLocal ? count_local_sectors(addresses, x.mask, bytes)
                                                 : count_sectors(addresses, x.mask);
}

}  // namespace

void decode_address(Decoder& d, const ptx::Instruction& s, const ptx::Operand& operand, Instruction& in) {
    const Address address = d.read_address(operand);
    if (d.failed()) return;
    Space space = stated_space(s);
    const Space symbol = address.symbol.space;
    if (symbol != Space::kNone) {
        // What a .param names is a kernel's parameter, or a variable of a call, which is in local memory.
        const bool fits = space == Space::kNone || space == symbol ||
                          (space == Space::kParameter && symbol == Space::kLocal) ||
                          (space == Space::kGlobal && symbol == Space::kConstant) ||
                          (space == Space::kConstant && symbol == Space::kGlobal);
        if (!fits) return d.refuse("the variable lies in another state space");
        space = symbol;
    } else if (space == Space::kParameter && !d.function().kernel) {
        space = Space::kLocal;
    }
    in.unit = Unit::kMemory;
    in.space = space;
    in.value = static_cast<uint64_t>(address.offset);
    if (space == Space::kNone) in.target |= kGeneric;
    if (address.symbol.in_frame) in.target |= kInFrame;
    if (!address.base)
        in.target |= kNoBase;
    else
        in.a = *address.base;
    if (address.base && !address.wide) in.target |= kNarrowBase;
}

void locate(Execution& x, const Instruction& in, uint64_t* addresses, uint32_t bytes, Located& where) {
    find_addresses(x, in, addresses);
    switch (in.space) {
        case Space::kNone:
            return locate_generic(x, addresses, bytes, where);
        case Space::kShared:
            return locate_shared(x, addresses, bytes, where);
        case Space::kLocal:
            one_by_one(x, where, [&](int lane) { return x.cta->local_at(x, lane, addresses[lane], bytes); });
            x.step.transactions = count_local_sectors(addresses, x.mask, bytes);
            return;
        case Space::kParameter:
            one_by_one(x, where,
                       [&](int lane) { return x.cta->parameter_at(x, lane, addresses[lane], bytes); });
            return;
        default:
            return locate_global(x, addresses, bytes, where, in.space);
    }
}

}  // namespace smt::runtime::device::simulated
