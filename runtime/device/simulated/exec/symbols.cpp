// The decoder's view of names: special registers, symbols, addresses, parameters of calls.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/device/simulated/exec/decoder.h"
#include "runtime/device/simulated/exec/execution.h"
#include "runtime/device/simulated/exec/families/control.h"
#include "runtime/device/simulated/exec/families/special.h"
#include "runtime/device/simulated/exec/numbers.h"
#include "runtime/device/simulated/exec/spaces.h"
#include "runtime/device/simulated/exec/specials.h"

namespace smt::runtime::device::simulated {

using Kind = ptx::Operand::Kind;

// ---- special registers

Slot Decoder::resize(Slot slot, int from, int to) {
    if (from == to) return slot;
    Instruction in;
    if (from == 32 && to == 64)
        in.run = lanewise<uint64_t, uint32_t>([](uint32_t a) { return static_cast<uint64_t>(a); });
    if (from == 32 && to == 16)
        in.run = lanewise<uint16_t, uint32_t>([](uint32_t a) { return static_cast<uint16_t>(a); });
    if (from == 64 && to == 32)
        in.run = lanewise<uint32_t, uint64_t>([](uint64_t a) { return static_cast<uint32_t>(a); });
    if (from == 64 && to == 16)
        in.run = lanewise<uint16_t, uint64_t>([](uint64_t a) { return static_cast<uint16_t>(a); });
    if (in.run == nullptr) {
        refuse("an operand of this width is not supported here");
        return slot;
    }
    in.d = temporary(to);
    in.a = slot;
    prepare(in, {slot}, {in.d});
    return in.d;
}

namespace {

// Registers that stay as they are while a warp runs: where they lie, and whether they have .x .y .z.
struct FixedRegister {
    ptx::Special special;
    Slot slot;
    bool axes = false;
    bool reserved = false;  // about the system's part of shared memory
};

const std::vector<FixedRegister>& fixed_registers() {
    using S = ptx::Special;
    using C = CtaValue;
    using W = WarpValue;
    static const std::vector<FixedRegister> registers = {
        {S::kTid, slot_of(W::kTidX), true},
        {S::kNtid, slot_of(C::kNtidX), true},
        {S::kCtaid, slot_of(C::kCtaX), true},
        {S::kClusterid, slot_of(C::kCtaX), true},  // a cluster has one CTA
        {S::kNctaid, slot_of(C::kNctaX), true},
        {S::kNclusterid, slot_of(C::kNctaX), true},
        {S::kClusterCtaid, slot_of(C::kZero)},
        {S::kClusterCtarank, slot_of(C::kZero)},
        {S::kClusterNctaid, slot_of(C::kOne)},
        {S::kClusterNctarank, slot_of(C::kOne)},
        {S::kLaneid, slot_of(W::kLane)},
        {S::kWarpid, slot_of(W::kWarp)},
        {S::kNwarpid, slot_of(C::kWarps)},
        {S::kSmid, slot_of(C::kSm)},
        {S::kNsmid, slot_of(C::kSms)},
        {S::kLanemaskEq, slot_of(W::kMaskEq)},
        {S::kLanemaskLe, slot_of(W::kMaskLe)},
        {S::kLanemaskLt, slot_of(W::kMaskLt)},
        {S::kLanemaskGe, slot_of(W::kMaskGe)},
        {S::kLanemaskGt, slot_of(W::kMaskGt)},
        {S::kTotalSmemSize, slot_of(C::kSharedTotal)},
        {S::kAggrSmemSize, slot_of(C::kSharedTotal)},
        {S::kDynamicSmemSize, slot_of(C::kSharedDynamic)},
        {S::kReservedSmemOffsetBegin, slot_of(C::kZero), false, true},
        {S::kReservedSmemOffset0, slot_of(C::kZero), false, true},
        {S::kReservedSmemOffset1, slot_of(C::kReserved1), false, true},
        {S::kReservedSmemOffsetEnd, slot_of(C::kReservedEnd), false, true},
        {S::kReservedSmemOffsetCap, slot_of(C::kReservedCap), false, true},
    };
    return registers;
}

}  // namespace

Slot Decoder::special32(const ptx::Operand& operand) {
    if (operand.special == ptx::Special::kEnvreg) {
        if (operand.bits == 1) return slot_of(CtaValue::kEnvironment1);
        return slot_of(operand.bits == 2 ? CtaValue::kEnvironment2 : CtaValue::kZero);
    }
    for (const FixedRegister& fixed : fixed_registers()) {
        if (fixed.special != operand.special) continue;
        program_.reserved_shared |= fixed.reserved;
        if (operand.component == 3) return constant(0, 32);  // .w
        const bool moved = fixed.axes && operand.component > 0;
        const uint32_t by = moved ? static_cast<uint32_t>(operand.component) * kValueBytes : 0;
        return Slot(fixed.slot.base(), fixed.slot.offset() + by);
    }
    refuse(fmt::format("{} is not supported", ptx::name(operand.special)));
    return {};
}

Slot Decoder::special(const ptx::Operand& operand, int width) {
    Instruction in;
    in.unit = Unit::kSpecial;
    in.run = special_reader(operand.special);
    if (in.run != nullptr) {  // one that changes while the kernel runs, or of 64 bits
        in.d = temporary(64);
        prepare(in, {}, {in.d});
        return resize(in.d, 64, width);
    }
    return resize(special32(operand), 32, width);
}

// ---- symbols and addresses

std::optional<uint32_t> Decoder::find_function(const std::string& name) const {
    return linked_.find_function(part_, name);
}

std::optional<Symbol> Decoder::find_symbol(const std::string& name) const {
    if (const Symbol* found = find(&Names::symbols, name)) return *found;
    const Module::Linked::Variable* variable = linked_.find_variable(part_, name);
    if (variable == nullptr) return std::nullopt;
    if (variable->variable->space == ptx::Space::kShared)
        return const_cast<Decoder*>(this)->shared_symbol(*variable->variable);
    if (variable->address == 0) return std::nullopt;  // .local at module scope
    const bool constant = variable->variable->space == ptx::Space::kConstant;
    return Symbol{constant ? Space::kConstant : Space::kGlobal,
                  variable->address,
                  variable->bytes,
                  false,
                  false,
                  variable->variable};
}

namespace {

template <class T>
void address_in_frame(Execution& x, const Instruction& in) {
    const T base = static_cast<T>(frame_variables(x) + in.value);
    for_lanes(x.mask, [&](int i) { x.at<T>(in.d)[i] = base; });
}

template <class T>
void address_behind_static(Execution& x, const Instruction& in) {
    const T base = static_cast<T>(*x.at<uint32_t>(slot_of(CtaValue::kDynamicBase)) + in.value);
    for_lanes(x.mask, [&](int i) { x.at<T>(in.d)[i] = base; });
}

}  // namespace

Slot Decoder::symbol_address(const ptx::Operand& operand, int width) {
    auto symbol = find_symbol(operand.name);
    if (!symbol) {
        if (auto number = find_function(operand.name)) return constant(function_address(*number), width);
        refuse(fmt::format("{} is not defined", operand.name));
        return {};
    }
    const uint64_t address = symbol->address + static_cast<uint64_t>(operand.offset);
    if (!symbol->in_frame && !symbol->dynamic_shared) return constant(address, width);
    if (width != 32 && width != 64) {
        refuse("an address has 32 or 64 bits");
        return {};
    }
    Instruction in;
    in.run = symbol->in_frame
                 ? (width == 64 ? address_in_frame<uint64_t> : address_in_frame<uint32_t>)
                 : (width == 64 ? address_behind_static<uint64_t> : address_behind_static<uint32_t>);
    in.value = address;
    in.d = temporary(width);
    prepare(in, {}, {in.d});
    return in.d;
}

Address Decoder::read_address(const ptx::Operand& operand) {
    Address address;
    if (operand.kind != Kind::kAddress || operand.elements.empty()) {
        refuse("an address belongs here");
        return address;
    }
    const ptx::Operand& base = operand.elements[0];
    address.offset = operand.offset;
    if (base.kind == Kind::kInteger) {
        address.offset += static_cast<int64_t>(base.bits);
        return address;
    }
    if (base.kind == Kind::kSymbol) {
        if (auto symbol = find_symbol(base.name); symbol && !symbol->dynamic_shared) {
            address.symbol = *symbol;
            address.offset += base.offset + static_cast<int64_t>(symbol->address);
            return address;
        }
    }
    if (base.kind == Kind::kRegister) address.wide = register_width(base) == 64;
    address.base = read(base, address.wide ? ptx::Type::kB64 : ptx::Type::kB32);
    if (base.kind == Kind::kSymbol) {
        address.symbol.space = Space::kShared;  // the dynamic part; its offset is in the base
        address.symbol.dynamic_shared = true;
    }
    return address;
}

Place Decoder::place_of(const ptx::Operand& operand, const ptx::Variable& formal, bool result) {
    Place place;
    place.bytes = static_cast<uint32_t>(bytes_of(formal));
    if (operand.kind == Kind::kSymbol) {
        auto symbol = find_symbol(operand.name);
        if (symbol && symbol->space == Space::kLocal && symbol->variable->space == ptx::Space::kParameter) {
            place.local = true;
            place.offset = static_cast<uint32_t>(symbol->address);
            place.bytes = std::min<uint32_t>(place.bytes, static_cast<uint32_t>(symbol->bytes));
            return place;
        }
    }
    if (operand.kind == Kind::kSink) {
        place.slot = kSink;
        return place;
    }
    if (ptx::bits(formal.type) == 1) {
        place.bytes = 0;
        place.slot = result ? write_predicate(operand) : read_predicate(operand);
        return place;
    }
    if (!formal.dimensions.empty()) {
        refuse("an array is passed in a .param variable");
        return place;
    }
    place.slot = result ? write(operand, formal.type) : read(operand, formal.type);
    return place;
}

}  // namespace smt::runtime::device::simulated
