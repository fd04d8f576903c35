// Arithmetic with the carry flag of the condition code. The flag is a predicate of its own; sub sets
// it on a borrow.
#include "runtime/device/simulated/exec/families/lanes.h"

namespace smt::runtime::device::simulated {
namespace {

// Takes the carry from `guard`-like slots: list[0] the flag that comes in, list[1] the one that goes out.
constexpr uint32_t kIn = 1;  // bits of Instruction::target
constexpr uint32_t kOut = 2;

template <class T, class F>
void with_carry(Execution& x, const Instruction& in) {
    const Slot flag = x.group->code->slots[in.list];
    const uint32_t before = (in.target & kIn) != 0 ? x.predicate(flag) : 0;
    const T* a = x.at<T>(in.a);
    const T* b = x.at<T>(in.b);
    const T* c = in.count == 2 ? x.at<T>(in.c) : nullptr;
    T values[kLanes];
    uint32_t after = 0;
    for (int i = 0; i < kLanes; ++i) {
        bool carry = (before >> i & 1) != 0;
        values[i] = F{}(a[i], b[i], c != nullptr ? c[i] : T{0}, carry);
        if (carry) after |= 1u << i;
    }
    keep(x, x.at<T>(in.d), values);
    if ((in.target & kOut) != 0) x.set_predicate(flag, after);
}

struct AddCarry {
    template <class T>
    T operator()(T a, T b, T, bool& carry) const {
        const T part = a + b;
        const T sum = part + (carry ? 1 : 0);
        carry = part < a || sum < part;
        return sum;
    }
};
struct SubtractBorrow {
    template <class T>
    T operator()(T a, T b, T, bool& carry) const {
        const T part = a - b;
        const T difference = part - (carry ? 1 : 0);
        carry = a < b || part < difference;
        return difference;
    }
};
template <class T>
T product_half(T a, T b, bool high, bool is_signed) {
    if constexpr (sizeof(T) == 4) {
        const uint64_t product = is_signed
                                     ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(a)) *
                                                             static_cast<int32_t>(b))
                                     : static_cast<uint64_t>(a) * b;
        return static_cast<T>(high ? product >> 32 : product);
    } else {
        const auto product =
            is_signed ? static_cast<unsigned __int128>(static_cast<__int128>(static_cast<int64_t>(a)) *
                                                       static_cast<int64_t>(b))
                      : static_cast<unsigned __int128>(a) * b;
        return static_cast<T>(high ? product >> 64 : product);
    }
}
template <bool High, bool Signed>
struct Mad {
    template <class T>
    T operator()(T a, T b, T c, bool& carry) const {
        return AddCarry{}(product_half(a, b, High, Signed), c, T{0}, carry);
    }
};

template <class F>
Handler by_width(Type type) {
    return ptx::bits(type) == 32 ? with_carry<uint32_t, F> : with_carry<uint64_t, F>;
}

Handler pick_extended(const ptx::Instruction& s) {
    const Type type = s.types[0];
    const bool is_signed = type == Type::kS32 || type == Type::kS64;
    switch (s.opcode) {
        case Opcode::kAdd:
        case Opcode::kAddc:
            return by_width<AddCarry>(type);
        case Opcode::kSub:
        case Opcode::kSubc:
            return by_width<SubtractBorrow>(type);
        default:
            break;
    }
    if (s.has(Modifier::kHi))
        return is_signed ? by_width<Mad<true, true>>(type) : by_width<Mad<true, false>>(type);
    return is_signed ? by_width<Mad<false, true>>(type) : by_width<Mad<false, false>>(type);
}

void decode_extended(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const bool three = s.operands.size() == 4;
    if (three)
        read_three(d, s, in, s.types[0]);
    else
        read_two(d, s, in, s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = pick_extended(s);
    const bool takes = s.opcode == Opcode::kAddc || s.opcode == Opcode::kSubc || s.opcode == Opcode::kMadc;
    const Slot flag = d.carry();
    in.list = d.list({flag});
    in.count = three ? 2 : 1;
    if (takes) {
        in.target |= kIn;
        d.reads(flag);
    }
    if (s.has(Modifier::kCc)) {
        in.target |= kOut;
        d.writes(flag);
    }
}

}  // namespace

void add_extended(std::vector<Row>& rows) {
    const char* family = "Extended precision";
    const TypeSet all = types("u32 s32 u64 s64");
    const auto row = [&](Opcode opcode, const char* required, const char* allowed) {
        rows.push_back({family,
                        opcode,
                        modifiers(required),
                        modifiers(allowed),
                        all,
                        {},
                        Unit::kInteger,
                        decode_extended,
                        ""});
    };
    row(Opcode::kAdd, "cc", "");
    row(Opcode::kAddc, "", "cc");
    row(Opcode::kSub, "cc", "");
    row(Opcode::kSubc, "", "cc");
    row(Opcode::kMad, "lo cc", "");
    row(Opcode::kMad, "hi cc", "");
    row(Opcode::kMadc, "lo", "cc");
    row(Opcode::kMadc, "hi", "cc");
}

}  // namespace smt::runtime::device::simulated
