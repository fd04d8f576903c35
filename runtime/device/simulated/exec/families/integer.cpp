// Integer arithmetic.
#include <algorithm>
#include <limits>

#include "runtime/device/simulated/exec/families/lanes.h"

namespace smt::runtime::device::simulated {
namespace {

// What PTX leaves open we answer as GPUs do: all ones for x / 0, x for x % 0.
template <class T>
T divide(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>)
        if (b == -1) return static_cast<T>(0 - wrap(a));
    return static_cast<T>(a / b);
}

template <class T>
T remainder(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>)
        if (b == -1) return 0;
    return static_cast<T>(a % b);
}

template <class T>
struct Wider;
template <>
struct Wider<uint16_t> {
    using type = uint32_t;
};
template <>
struct Wider<int16_t> {
    using type = int32_t;
};
template <>
struct Wider<uint32_t> {
    using type = uint64_t;
};
template <>
struct Wider<int32_t> {
    using type = int64_t;
};
template <>
struct Wider<uint64_t> {
    using type = unsigned __int128;
};
template <>
struct Wider<int64_t> {
    using type = __int128;
};

template <class T>
T high_half(T a, T b) {
    using W = typename Wider<T>::type;
    return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
}

int32_t saturate(int64_t value) {
    return static_cast<int32_t>(
        std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}

bool packed(const ptx::Instruction& s) { return s.types[0] == Type::kU16x2 || s.types[0] == Type::kS16x2; }

// u16x2 and s16x2: U and S on the halves.
template <class U, class S>
void packed_binary(Decoder& d, const ptx::Instruction& s, Instruction& in, U, S) {
    read_two(d, s, in, s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    const auto u = [](uint32_t a, uint32_t b) { return by_halves<uint16_t>(a, b, U{}); };
    const auto g = [](uint32_t a, uint32_t b) { return by_halves<int16_t>(a, b, S{}); };
    in.run = s.types[0] == Type::kU16x2 ? lanewise<uint32_t, uint32_t, uint32_t>(u)
                                        : lanewise<uint32_t, uint32_t, uint32_t>(g);
}

void decode_integer_add(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const auto add = [](auto a, auto b) { return static_cast<decltype(a)>(wrap(a) + wrap(b)); };
    if (packed(s)) return packed_binary(d, s, in, add, add);
    integer_binary(d, s, in, add);
    if (s.has(Modifier::kSat))
        in.run = lanewise<int32_t, int32_t, int32_t>([](int64_t a, int64_t b) { return saturate(a + b); });
}

void decode_integer_sub(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const auto sub = [](auto a, auto b) { return static_cast<decltype(a)>(wrap(a) - wrap(b)); };
    integer_binary(d, s, in, sub);
    if (s.has(Modifier::kSat))
        in.run = lanewise<int32_t, int32_t, int32_t>([](int64_t a, int64_t b) { return saturate(a - b); });
}

void decode_integer_mul(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.has(Modifier::kHi)) return integer_binary(d, s, in, [](auto a, auto b) { return high_half(a, b); });
    integer_binary(d, s, in, [](auto a, auto b) { return static_cast<decltype(a)>(wrap(a) * wrap(b)); });
}

void decode_mad(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.has(Modifier::kLo))
        return integer_ternary(d, s, in, [](auto a, auto b, auto c) {
            return static_cast<decltype(a)>(wrap(a) * wrap(b) + wrap(c));
        });
    integer_ternary(d, s, in, [](auto a, auto b, auto c) {
        return static_cast<decltype(a)>(wrap(high_half(a, b)) + wrap(c));
    });
    if (s.has(Modifier::kSat))
        in.run = lanewise<int32_t, int32_t, int32_t, int32_t>(
            [](int32_t a, int32_t b, int64_t c) { return saturate(high_half(a, b) + c); });
}

Type doubled(Type type) {
    switch (type) {
        case Type::kU16:
            return Type::kU32;
        case Type::kS16:
            return Type::kS32;
        case Type::kU32:
            return Type::kU64;
        default:
            return Type::kS64;
    }
}

template <class F>
Handler for_narrow(Type type, F f) {
    switch (type) {
        case Type::kU16:
            return f.template operator()<uint16_t>();
        case Type::kS16:
            return f.template operator()<int16_t>();
        case Type::kU32:
            return f.template operator()<uint32_t>();
        case Type::kS32:
            return f.template operator()<int32_t>();
        default:
            return nullptr;
    }
}

void decode_mul_wide(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    read_two(d, s, in, s.types[0]);
    in.d = d.write(s.operands[0], doubled(s.types[0]));
    in.run = for_narrow(s.types[0], []<class T>() {
        using W = typename Wider<T>::type;
        return lanewise<W, T, T>(
            [](T a, T b) { return static_cast<W>(static_cast<W>(a) * static_cast<W>(b)); });
    });
}

void decode_mad_wide(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    read_two(d, s, in, s.types[0]);
    in.c = d.read(s.operands[3], doubled(s.types[0]));
    in.d = d.write(s.operands[0], doubled(s.types[0]));
    in.run = for_narrow(s.types[0], []<class T>() {
        using W = typename Wider<T>::type;
        return lanewise<W, T, T, W>([](T a, T b, W c) {
            return static_cast<W>(wrap(static_cast<W>(static_cast<W>(a) * static_cast<W>(b))) + wrap(c));
        });
    });
}

// The low 24 bits of a value, as its type counts them.
int64_t low24(uint32_t a) { return a & 0xff'ffff; }
int64_t low24(int32_t a) { return static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8; }

void decode_mul24(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.has(Modifier::kHi))
        return integer_binary(d, s, in, [](auto a, auto b) {
            if constexpr (sizeof(a) == 4) return static_cast<decltype(a)>((low24(a) * low24(b)) >> 16);
            return a;
        });
    integer_binary(d, s, in, [](auto a, auto b) {
        if constexpr (sizeof(a) == 4) return static_cast<decltype(a)>(low24(a) * low24(b));
        return a;
    });
}

void decode_mad24(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.has(Modifier::kHi)) {
        integer_ternary(d, s, in, [](auto a, auto b, auto c) {
            if constexpr (sizeof(a) == 4) return static_cast<decltype(a)>(((low24(a) * low24(b)) >> 16) + c);
            return a;
        });
        if (s.has(Modifier::kSat))
            in.run = lanewise<int32_t, int32_t, int32_t, int32_t>([](int32_t a, int32_t b, int64_t c) {
                return saturate(static_cast<int32_t>((low24(a) * low24(b)) >> 16) + c);
            });
        return;
    }
    integer_ternary(d, s, in, [](auto a, auto b, auto c) {
        if constexpr (sizeof(a) == 4) return static_cast<decltype(a)>(low24(a) * low24(b) + c);
        return a;
    });
}

void decode_sad(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    integer_ternary(d, s, in, [](auto a, auto b, auto c) {
        return static_cast<decltype(a)>(wrap(c) + (a < b ? wrap(b) - wrap(a) : wrap(a) - wrap(b)));
    });
}

void decode_integer_div(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    integer_binary(d, s, in, [](auto a, auto b) { return divide(a, b); });
}

void decode_rem(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    integer_binary(d, s, in, [](auto a, auto b) { return remainder(a, b); });
}

void decode_integer_abs(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    integer_unary(d, s, in, [](auto a) { return static_cast<decltype(a)>(a < 0 ? 0 - wrap(a) : wrap(a)); });
}

void decode_integer_neg(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    integer_unary(d, s, in, [](auto a) { return static_cast<decltype(a)>(0 - wrap(a)); });
}

void decode_min(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const auto least = [](auto a, auto b) { return std::min(a, b); };
    const auto positive = [](auto a, auto b) { return std::max<decltype(a)>(std::min(a, b), 0); };
    const bool relu = s.has(Modifier::kRelu);
    if (packed(s))
        return relu ? packed_binary(d, s, in, least, positive) : packed_binary(d, s, in, least, least);
    relu ? integer_binary(d, s, in, positive) : integer_binary(d, s, in, least);
}

void decode_max(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const auto most = [](auto a, auto b) { return std::max(a, b); };
    const auto positive = [](auto a, auto b) { return std::max<decltype(a)>(std::max(a, b), 0); };
    const bool relu = s.has(Modifier::kRelu);
    if (packed(s))
        return relu ? packed_binary(d, s, in, most, positive) : packed_binary(d, s, in, most, most);
    relu ? integer_binary(d, s, in, positive) : integer_binary(d, s, in, most);
}

}  // namespace

void add_integer(std::vector<Row>& rows) {
    const char* family = "Integer arithmetic";
    const TypeSet all = types("u16 s16 u32 s32 u64 s64");
    const TypeSet narrow = types("u16 s16 u32 s32");
    const TypeSet words = types("u32 s32");
    const TypeSet pairs = types("u16x2 s16x2");
    const Unit unit = Unit::kInteger;
    const auto row = [&](Opcode opcode, const char* required, const char* allowed, TypeSet first, auto decode,
                         const char* note = "") {
        rows.push_back(
            {family, opcode, modifiers(required), modifiers(allowed), first, {}, unit, decode, note});
    };
    row(Opcode::kAdd, "", "", all | pairs, decode_integer_add);
    row(Opcode::kAdd, "sat", "", types("s32"), decode_integer_add);
    row(Opcode::kSub, "", "", all, decode_integer_sub);
    row(Opcode::kSub, "sat", "", types("s32"), decode_integer_sub);
    row(Opcode::kMul, "lo", "", all, decode_integer_mul);
    row(Opcode::kMul, "hi", "", all, decode_integer_mul);
    row(Opcode::kMul, "wide", "", narrow, decode_mul_wide);
    row(Opcode::kMad, "lo", "", all, decode_mad);
    row(Opcode::kMad, "hi", "", all, decode_mad);
    row(Opcode::kMad, "hi sat", "", types("s32"), decode_mad);
    row(Opcode::kMad, "wide", "", narrow, decode_mad_wide);
    row(Opcode::kMul24, "", "lo hi", words, decode_mul24);
    row(Opcode::kMad24, "", "lo hi", words, decode_mad24);
    row(Opcode::kMad24, "hi sat", "", types("s32"), decode_mad24);
    row(Opcode::kSad, "", "", all, decode_sad);
    row(Opcode::kDiv, "", "", all, decode_integer_div, "x / 0 is all ones");
    row(Opcode::kRem, "", "", all, decode_rem, "x % 0 is x");
    row(Opcode::kAbs, "", "", types("s16 s32 s64"), decode_integer_abs);
    row(Opcode::kNeg, "", "", types("s16 s32 s64"), decode_integer_neg);
    row(Opcode::kMin, "", "", all | pairs, decode_min);
    row(Opcode::kMin, "relu", "", types("s32 s16x2"), decode_min);
    row(Opcode::kMax, "", "", all | pairs, decode_max);
    row(Opcode::kMax, "relu", "", types("s32 s16x2"), decode_max);
}

}  // namespace smt::runtime::device::simulated
