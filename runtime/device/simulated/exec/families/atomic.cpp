// Atomic operations: lane after lane, each a read and a write with nothing between them.
#include <algorithm>

#include "runtime/device/simulated/exec/families/addressing.h"
#include "runtime/device/simulated/exec/families/half.h"

namespace smt::runtime::device::simulated {
namespace {

using U128 = unsigned __int128;

struct Exchange_ {
    template <class T>
    T operator()(T, T b) const {
        return b;
    }
};
struct AtomicAnd {
    template <class T>
    T operator()(T a, T b) const {
        return a & b;
    }
};
struct AtomicOr {
    template <class T>
    T operator()(T a, T b) const {
        return a | b;
    }
};
struct AtomicXor {
    template <class T>
    T operator()(T a, T b) const {
        return a ^ b;
    }
};
struct AtomicAdd {
    template <class T>
    T operator()(T a, T b) const {
        return static_cast<T>(wrap(a) + wrap(b));
    }
    double operator()(double a, double b) const { return a + b; }
    float operator()(float a, float b) const { return canonical(a + b); }
};
// As on hardware, additions in global memory take subnormals for zero.
struct AtomicAddFlushed {
    float operator()(float a, float b) const { return canonical(flush(flush(a) + flush(b))); }
};
struct AtomicMin {
    template <class T>
    T operator()(T a, T b) const {
        return std::min(a, b);
    }
};
struct AtomicMax {
    template <class T>
    T operator()(T a, T b) const {
        return std::max(a, b);
    }
};
struct Increment {
    uint32_t operator()(uint32_t a, uint32_t b) const { return a >= b ? 0 : a + 1; }
};
struct Decrement {
    uint32_t operator()(uint32_t a, uint32_t b) const { return a == 0 || a > b ? b : a - 1; }
};

enum class HalfOperation : uint8_t { kAdd, kMin, kMax };

template <class H, HalfOperation Op>
uint16_t half_operation(uint16_t a, uint16_t b) {
    if (Op == HalfOperation::kAdd) {
        const uint16_t sum = H::down(H::up(a) + H::up(b));
        return (sum & 0x7fff) > H::kFormat.infinity() ? 0x7fff : sum;
    }
    const float fa = H::up(a);
    const float fb = H::up(b);
    if (fa != fa) return fb != fb ? 0x7fff : b;
    if (fb != fb) return a;
    const bool below = fa < fb || (fa == fb && (a & 0x8000) > (b & 0x8000));
    return below == (Op == HalfOperation::kMin) ? a : b;
}

template <class H, HalfOperation Op, bool Packed>
struct Half {
    template <class T>
    T operator()(T a, T b) const {
        if constexpr (!Packed)
            return half_operation<H, Op>(a, b);
        else
            return by_halves<uint16_t>(a, b,
                                       [](uint16_t p, uint16_t q) { return half_operation<H, Op>(p, q); });
    }
};

// list: the sources b of each element, then the results if there are any. `count` is the elements'.
template <class T, class F>
void update(Execution& x, const Instruction& in) {
    uint64_t addresses[kLanes];
    Located where;
    locate(x, in, addresses, static_cast<uint32_t>(sizeof(T)) * in.count, where);
    if (!where.ok) return;
    const Slot* sources = &x.group->code->slots[in.list];
    const Slot* results = sources + in.count;
    const bool wants = (in.target & 0xff) != 0;
    for (int k = 0; k < in.count; ++k) {
        const T* b = x.at<T>(sources[k]);
        T* d = wants && results[k] != kSink ? x.at<T>(results[k]) : nullptr;
        for_lanes(x.mask, [&](int i) {
            std::byte* at = where.at(i, addresses) + sizeof(T) * static_cast<size_t>(k);
            T old;
            std::memcpy(&old, at, sizeof(T));
            const T now = F{}(old, b[i]);
            std::memcpy(at, &now, sizeof(T));
            if (d != nullptr) d[i] = old;
        });
    }
}

template <class T>
void compare_and_swap(Execution& x, const Instruction& in) {
    uint64_t addresses[kLanes];
    Located where;
    locate(x, in, addresses, sizeof(T), where);
    if (!where.ok) return;
    const Slot* slots = &x.group->code->slots[in.list];
    const T* b = x.at<T>(slots[0]);
    const T* c = x.at<T>(slots[1]);
    T values[kLanes];
    for_lanes(x.mask, [&](int i) {
        std::byte* at = where.at(i, addresses);
        std::memcpy(&values[i], at, sizeof(T));
        if (values[i] == b[i]) std::memcpy(at, &c[i], sizeof(T));
    });
    if (slots[2] != kSink) keep(x, x.at<T>(slots[2]), values);
}

template <class F>
Handler bitwise(Type type, F) {
    switch (ptx::bits(type)) {
        case 16:
            return update<uint16_t, F>;
        case 32:
            return update<uint32_t, F>;
        case 64:
            return update<uint64_t, F>;
        default:
            return nullptr;
    }
}

template <class F>
Handler arithmetic(Type type, F) {
    switch (type) {
        case Type::kU32:
            return update<uint32_t, F>;
        case Type::kS32:
            return update<int32_t, F>;
        case Type::kU64:
            return update<uint64_t, F>;
        case Type::kS64:
            return update<int64_t, F>;
        default:
            return nullptr;
    }
}

template <HalfOperation Op>
Handler halves(Type type) {
    switch (type) {
        case Type::kF16:
            return update<uint16_t, Half<HalfFormat, Op, false>>;
        case Type::kBf16:
            return update<uint16_t, Half<BrainFormat, Op, false>>;
        case Type::kF16x2:
            return update<uint32_t, Half<HalfFormat, Op, true>>;
        case Type::kBf16x2:
            return update<uint32_t, Half<BrainFormat, Op, true>>;
        default:
            return nullptr;
    }
}

// Generic addresses of shared memory keep subnormals, too: decided by the space the step found.
template <bool>
void add_single(Execution& x, const Instruction& in) {
    if (in.space == Space::kShared) return update<float, AtomicAdd>(x, in);
    if (in.space == Space::kNone) {
        uint64_t addresses[kLanes];
        find_addresses(x, in, addresses);
        if (in_window(addresses[std::countr_zero(x.mask)], kSharedWindow))
            return update<float, AtomicAdd>(x, in);
    }
    update<float, AtomicAddFlushed>(x, in);
}

Handler pick_atomic(const ptx::Instruction& s) {
    const Type type = s.types[0];
    const bool halves_type = is_half(type) || type == Type::kBf16 || type == Type::kBf16x2;
    if (s.has(Modifier::kExch))
        return type == Type::kB128 ? update<U128, Exchange_> : bitwise(type, Exchange_{});
    if (s.has(Modifier::kAnd)) return bitwise(type, AtomicAnd{});
    if (s.has(Modifier::kOr)) return bitwise(type, AtomicOr{});
    if (s.has(Modifier::kXor)) return bitwise(type, AtomicXor{});
    if (s.has(Modifier::kInc)) return update<uint32_t, Increment>;
    if (s.has(Modifier::kDec)) return update<uint32_t, Decrement>;
    if (s.has(Modifier::kMin))
        return halves_type ? halves<HalfOperation::kMin>(type) : arithmetic(type, AtomicMin{});
    if (s.has(Modifier::kMax))
        return halves_type ? halves<HalfOperation::kMax>(type) : arithmetic(type, AtomicMax{});
    if (!s.has(Modifier::kAdd)) return nullptr;
    if (type == Type::kF32) return add_single<true>;
    if (type == Type::kF64) return update<double, AtomicAdd>;
    return halves_type ? halves<HalfOperation::kAdd>(type) : arithmetic(type, AtomicAdd{});
}

Handler pick_swap(Type type) {
    switch (ptx::bits(type)) {
        case 16:
            return compare_and_swap<uint16_t>;
        case 32:
            return compare_and_swap<uint32_t>;
        case 64:
            return compare_and_swap<uint64_t>;
        case 128:
            return compare_and_swap<U128>;
        default:
            return nullptr;
    }
}

std::vector<ptx::Operand> atomic_elements(const ptx::Operand& operand) {
    return operand.kind == ptx::Operand::Kind::kVector ? operand.elements
                                                       : std::vector<ptx::Operand>{operand};
}

// atom d, [a], b{, c}; red [a], b.
void decode_atomic(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const bool gives = s.opcode == Opcode::kAtom;
    const size_t first = gives ? 1 : 0;
    decode_address(d, s, s.operands[first], in);
    if (d.failed()) return;
    if (in.space != Space::kNone && in.space != Space::kGlobal && in.space != Space::kShared)
        return d.refuse("atomic operations are on global and shared memory");
    in.store = in.atomic = true;
    std::vector<Slot> slots;
    const auto result = [&](const ptx::Operand& operand) {
        slots.push_back(operand.kind == ptx::Operand::Kind::kSink ? kSink : d.write(operand, s.types[0]));
    };
    if (s.has(Modifier::kCas)) {
        slots = {d.read(s.operands[2], s.types[0]), d.read(s.operands[3], s.types[0])};
        result(s.operands[0]);
        in.run = pick_swap(s.types[0]);
    } else {
        const auto sources = atomic_elements(s.operands[first + 1]);
        for (const ptx::Operand& source : sources) slots.push_back(d.read(source, s.types[0]));
        in.count = static_cast<uint8_t>(sources.size());
        if (gives) {
            in.target |= 1;
            for (const ptx::Operand& each : atomic_elements(s.operands[0])) result(each);
        }
        in.run = pick_atomic(s);
    }
    in.list = d.list(slots);
}

}  // namespace

void add_atomic(std::vector<Row>& rows) {
    const char* family = "Atomic operations";
    const char* where =
        "relaxed acquire release acq_rel cta cluster gpu sys global shared shared::cta shared::cluster "
        "L2::cache_hint";
    const auto row = [&](Opcode opcode, const char* required, const char* more, const char* first,
                         const char* note = "") {
        rows.push_back({family,
                        opcode,
                        modifiers(required),
                        modifiers(where) | modifiers(more),
                        types(first),
                        {},
                        Unit::kMemory,
                        decode_atomic,
                        note});
    };
    row(Opcode::kAtom, "cas", "", "b16 b32 b64 b128 u32 u64 s32 s64");
    row(Opcode::kAtom, "exch", "", "b32 b64 b128 u32 u64 s32 s64");
    for (Opcode opcode : {Opcode::kAtom, Opcode::kRed}) {
        row(opcode, "and", "", "b32 b64");
        row(opcode, "or", "", "b32 b64");
        row(opcode, "xor", "", "b32 b64");
        row(opcode, "add", "", "u32 s32 u64 s64 f64");
        row(opcode, "add", "v2 v4", "f32", "in global memory subnormals count as zero");
        row(opcode, "inc", "", "u32");
        row(opcode, "dec", "", "u32");
        for (const char* extreme : {"min", "max"}) row(opcode, extreme, "", "u32 s32 u64 s64");
        for (const char* each : {"add noftz", "min noftz", "max noftz"})
            row(opcode, each, "v2 v4 v8", "f16 bf16 f16x2 bf16x2");
    }
}

}  // namespace smt::runtime::device::simulated
