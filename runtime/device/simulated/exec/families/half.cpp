// Arithmetic of .f16, .f16x2, .bf16 and .bf16x2.
//
// Sums, differences and products are computed in a wider format in which they are exact or rounded so
// finely that rounding once more gives the right result; a fused multiply-add is exact in its product
// and its sum is rounded to odd first.
#include "runtime/device/simulated/exec/families/half.h"

namespace smt::runtime::device::simulated {
namespace {

enum class After : uint8_t { kNothing, kSat, kRelu };

template <class H, bool Ftz, After Then>
uint16_t finish_half(uint16_t bits) {
    if (Ftz) bits = flush_half<H>(bits);
    const bool nan = (bits & 0x7fff) > H::kFormat.infinity();
    if (Then == After::kSat) {
        const uint16_t one = H::down(1.0f);
        if (nan || (bits & 0x8000) != 0) return 0;
        return bits > one ? one : bits;
    }
    if (nan) return 0x7fff;
    if (Then == After::kRelu && (bits & 0x8000) != 0) return 0;
    return bits;
}

// Op works on bits of one value; here it is put on lanes of one or two of them.
template <class H, class Op, bool Ftz, After Then, bool Packed>
Handler lanes() {
    const auto one = [](uint16_t a, uint16_t b, uint16_t c) {
        if (Ftz) {
            a = flush_half<H>(a);
            b = flush_half<H>(b);
            c = flush_half<H>(c);
        }
        return finish_half<H, Ftz, Then>(Op::template run<H>(a, b, c));
    };
    using One = decltype(one);
    if constexpr (Packed)
        return lanewise<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
            const auto half = [&](int s) {
                return static_cast<uint32_t>(One{}(static_cast<uint16_t>(a >> s), static_cast<uint16_t>(b >> s), static_cast<uint16_t>(c >> s))) << s;
            };
            return half(0) | half(16);
        });
    else
        return lanewise<uint16_t, uint16_t, uint16_t, uint16_t>(one);
}

template <class H, class Op, bool Packed>
Handler with_modifiers(const ptx::Instruction& s) {
    const bool ftz = s.has(Modifier::kFtz);
    if (s.has(Modifier::kSat)) return ftz ? lanes<H, Op, true, After::kSat, Packed>() : lanes<H, Op, false, After::kSat, Packed>();
    if (s.has(Modifier::kRelu)) return ftz ? lanes<H, Op, true, After::kRelu, Packed>() : lanes<H, Op, false, After::kRelu, Packed>();
    return ftz ? lanes<H, Op, true, After::kNothing, Packed>() : lanes<H, Op, false, After::kNothing, Packed>();
}

template <class Op>
void decode(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const Type type = s.types[0];
    const size_t sources = s.operands.size() - 1;
    if (sources > 3) return d.refuse("the form with that many sources is not supported");
    in.a = in.b = in.c = d.read(s.operands[1], type);
    if (sources > 1) in.b = d.read(s.operands[2], type);
    if (sources > 2) in.c = d.read(s.operands[3], type);
    in.d = d.write(s.operands[0], type);
    if (is_half(type)) in.run = is_packed_half(type) ? with_modifiers<HalfFormat, Op, true>(s) : with_modifiers<HalfFormat, Op, false>(s);
    else in.run = is_packed_half(type) ? with_modifiers<BrainFormat, Op, true>(s) : with_modifiers<BrainFormat, Op, false>(s);
}

struct Add {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t b, uint16_t) { return H::down(H::up(a) + H::up(b)); }
};
struct Sub {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t b, uint16_t) { return H::down(H::up(a) - H::up(b)); }
};
struct Mul {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t b, uint16_t) { return H::down(static_cast<double>(H::up(a)) * static_cast<double>(H::up(b))); }
};
struct Fma {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t b, uint16_t c) {
        return H::down(add_to_odd(static_cast<double>(H::up(a)) * static_cast<double>(H::up(b)), static_cast<double>(H::up(c))));
    }
};
struct Neg {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t, uint16_t) { return a ^ 0x8000; }
};
struct Abs {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t, uint16_t) { return a & 0x7fff; }
};
struct Ex2 {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t, uint16_t) { return H::down(std::exp2(static_cast<double>(H::up(a)))); }
};
struct Tanh {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t, uint16_t) { return H::down(std::tanh(static_cast<double>(H::up(a)))); }
};

// Order of the bits as numbers, -0 below +0.
int key(uint16_t bits) { return (bits & 0x8000) != 0 ? -1 - (bits & 0x7fff) : bits; }
template <class H>
bool is_nan(uint16_t bits) { return (bits & 0x7fff) > H::kFormat.infinity(); }

template <bool Most, bool Nan, bool Magnitude>
struct Extreme {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t b, uint16_t) {
        const uint16_t sign = (a ^ b) & 0x8000;
        if (is_nan<H>(a) || is_nan<H>(b)) {
            if (Nan || (is_nan<H>(a) && is_nan<H>(b))) return 0x7fff;
            const uint16_t number = is_nan<H>(a) ? b : a;
            return Magnitude ? static_cast<uint16_t>((number & 0x7fff) | sign) : number;
        }
        if (Magnitude) {
            a &= 0x7fff;
            b &= 0x7fff;
        }
        const uint16_t result = (key(a) < key(b)) == Most ? b : a;
        return Magnitude ? static_cast<uint16_t>(result | sign) : result;
    }
};

template <bool Most>
void decode_extreme(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.operands.size() != 3) return d.refuse("the form with three sources is not supported");
    const bool nan = s.has(Modifier::kNaN);
    if (s.has(Modifier::kXorsign)) return nan ? decode<Extreme<Most, true, true>>(d, s, in) : decode<Extreme<Most, false, true>>(d, s, in);
    nan ? decode<Extreme<Most, true, false>>(d, s, in) : decode<Extreme<Most, false, false>>(d, s, in);
}

}  // namespace

void add_half(std::vector<Row>& rows) {
    const char* family = "16-bit floating point";
    const auto row = [&](Opcode opcode, const char* required, const char* allowed, const char* first, auto decode, Unit unit = Unit::kFloat) {
        rows.push_back({family, opcode, modifiers(required), modifiers(allowed), types(first), {}, unit, decode, ""});
    };
    row(Opcode::kAdd, "", "rn ftz sat", "f16 f16x2", decode<Add>);
    row(Opcode::kAdd, "", "rn", "bf16 bf16x2", decode<Add>);
    row(Opcode::kSub, "", "rn ftz sat", "f16 f16x2", decode<Sub>);
    row(Opcode::kSub, "", "rn", "bf16 bf16x2", decode<Sub>);
    row(Opcode::kMul, "", "rn ftz sat", "f16 f16x2", decode<Mul>);
    row(Opcode::kMul, "", "rn", "bf16 bf16x2", decode<Mul>);
    row(Opcode::kFma, "rn", "ftz sat relu", "f16 f16x2", decode<Fma>);
    row(Opcode::kFma, "rn", "relu", "bf16 bf16x2", decode<Fma>);
    row(Opcode::kNeg, "", "ftz", "f16 f16x2", decode<Neg>);
    row(Opcode::kNeg, "", "", "bf16 bf16x2", decode<Neg>);
    row(Opcode::kAbs, "", "ftz", "f16 f16x2", decode<Abs>);
    row(Opcode::kAbs, "", "", "bf16 bf16x2", decode<Abs>);
    row(Opcode::kMin, "", "ftz NaN xorsign abs", "f16 f16x2", decode_extreme<false>);
    row(Opcode::kMin, "", "NaN xorsign abs", "bf16 bf16x2", decode_extreme<false>);
    row(Opcode::kMax, "", "ftz NaN xorsign abs", "f16 f16x2", decode_extreme<true>);
    row(Opcode::kMax, "", "NaN xorsign abs", "bf16 bf16x2", decode_extreme<true>);
    row(Opcode::kEx2, "approx", "", "f16 f16x2", decode<Ex2>, Unit::kSpecial);
    row(Opcode::kEx2, "approx ftz", "", "bf16 bf16x2", decode<Ex2>, Unit::kSpecial);
    row(Opcode::kTanh, "approx", "", "f16 f16x2 bf16 bf16x2", decode<Tanh>, Unit::kSpecial);
}

}  // namespace smt::runtime::device::simulated
