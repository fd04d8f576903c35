// Arithmetic of .f16, .f16x2, .bf16 and .bf16x2.
//
// Sums, differences and products are computed in a wider format in which they are exact or rounded so
// finely that rounding once more gives the right result; a fused multiply-add is exact in its product
// and its sum is rounded to odd first.
#include "runtime/device/simulated/exec/families/half.h"

#include <algorithm>

namespace smt::runtime::device::simulated {
namespace {

// Instruction::target: what happens to operands and result.
constexpr uint32_t kFtz = 1, kSat = 2, kRelu = 4;

template <class H>
uint16_t finish_half(uint16_t bits, uint32_t how) {
    if ((how & kFtz) != 0) bits = flush_half<H>(bits);
    const bool nan = (bits & 0x7fff) > H::kFormat.infinity();
    if ((how & kSat) != 0) return nan || (bits & 0x8000) != 0 ? uint16_t{0} : std::min(bits, H::down(1.0f));
    if (nan) return 0x7fff;
    return (how & kRelu) != 0 && (bits & 0x8000) != 0 ? uint16_t{0} : bits;
}

// Op works on the bits of one value.
template <class H, class Op>
uint16_t one(uint32_t a, uint32_t b, uint32_t c, uint32_t how) {
    auto x = static_cast<uint16_t>(a);
    auto y = static_cast<uint16_t>(b);
    auto z = static_cast<uint16_t>(c);
    if ((how & kFtz) != 0) {
        x = flush_half<H>(x);
        y = flush_half<H>(y);
        z = flush_half<H>(z);
    }
    uint16_t bits = Op::template run<H>(x, y, z);
    // As without_tiny(), for the smallest normal number.
    if constexpr (requires { Op::template exact<H>(x, y, z); }) {
        const bool smallest = (bits & 0x7fff) == 1 << H::kFormat.fraction_bits;
        if ((how & kFtz) != 0 && smallest &&
            std::fabs(Op::template exact<H>(x, y, z)) < std::fabs(H::up(bits)))
            bits &= 0x8000;
    }
    return finish_half<H>(bits, how);
}

template <class H, class Op>
void run_single(Execution& x, const Instruction& in) {
    const uint16_t* a = x.at<uint16_t>(in.a);
    const uint16_t* b = x.at<uint16_t>(in.b);
    const uint16_t* c = x.at<uint16_t>(in.c);
    uint16_t values[kLanes];
    for (int i = 0; i < kLanes; ++i) values[i] = one<H, Op>(a[i], b[i], c[i], in.target);
    keep(x, x.at<uint16_t>(in.d), values);
}

template <class H, class Op>
void run_packed(Execution& x, const Instruction& in) {
    const uint32_t* a = x.at<uint32_t>(in.a);
    const uint32_t* b = x.at<uint32_t>(in.b);
    const uint32_t* c = x.at<uint32_t>(in.c);
    uint32_t values[kLanes];
    for (int i = 0; i < kLanes; ++i) {
        const uint32_t high = one<H, Op>(a[i] >> 16, b[i] >> 16, c[i] >> 16, in.target);
        values[i] = high << 16 | one<H, Op>(a[i], b[i], c[i], in.target);
    }
    keep(x, x.at<uint32_t>(in.d), values);
}

template <class Op>
void decode_half(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const Type type = s.types[0];
    const size_t sources = s.operands.size() - 1;
    if (sources > 3) return d.refuse("the form with that many sources is not supported");
    in.a = in.b = in.c = d.read(s.operands[1], type);
    if (sources > 1) in.b = d.read(s.operands[2], type);
    if (sources > 2) in.c = d.read(s.operands[3], type);
    in.d = d.write(s.operands[0], type);
    in.target = (s.has(Modifier::kFtz) ? kFtz : 0) | (s.has(Modifier::kSat) ? kSat : 0) |
                (s.has(Modifier::kRelu) ? kRelu : 0);
    const bool packed = is_packed_half(type);
    if (is_half(type))
        in.run = packed ? run_packed<HalfFormat, Op> : run_single<HalfFormat, Op>;
    else
        in.run = packed ? run_packed<BrainFormat, Op> : run_single<BrainFormat, Op>;
}

struct HalfAdd {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t b, uint16_t) {
        return H::down(H::up(a) + H::up(b));
    }
};
struct HalfSub {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t b, uint16_t) {
        return H::down(H::up(a) - H::up(b));
    }
};
struct Mul {
    template <class H>
    static double exact(uint16_t a, uint16_t b, uint16_t) {
        return static_cast<double>(H::up(a)) * static_cast<double>(H::up(b));
    }
    template <class H>
    static uint16_t run(uint16_t a, uint16_t b, uint16_t c) {
        return H::down(exact<H>(a, b, c));
    }
};
struct Fma {
    template <class H>
    static double exact(uint16_t a, uint16_t b, uint16_t c) {
        return static_cast<double>(H::up(a)) * static_cast<double>(H::up(b)) + static_cast<double>(H::up(c));
    }
    template <class H>
    static uint16_t run(uint16_t a, uint16_t b, uint16_t c) {
        return H::down(add_to_odd(static_cast<double>(H::up(a)) * static_cast<double>(H::up(b)),
                                  static_cast<double>(H::up(c))));
    }
};
struct Neg {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t, uint16_t) {
        return a ^ 0x8000;
    }
};
struct Abs {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t, uint16_t) {
        return a & 0x7fff;
    }
};
struct Ex2 {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t, uint16_t) {
        return H::down(std::exp2(static_cast<double>(H::up(a))));
    }
};
struct Tanh {
    template <class H>
    static uint16_t run(uint16_t a, uint16_t, uint16_t) {
        return H::down(std::tanh(static_cast<double>(H::up(a))));
    }
};

// Order of the bits as numbers, -0 below +0.
int key(uint16_t bits) { return (bits & 0x8000) != 0 ? -1 - (bits & 0x7fff) : bits; }
template <class H>
bool is_nan(uint16_t bits) {
    return (bits & 0x7fff) > H::kFormat.infinity();
}

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
void decode_half_extreme(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.operands.size() != 3) return d.refuse("the form with three sources is not supported");
    const bool nan = s.has(Modifier::kNaN);
    if (s.has(Modifier::kXorsign))
        return nan ? decode_half<Extreme<Most, true, true>>(d, s, in)
                   : decode_half<Extreme<Most, false, true>>(d, s, in);
    nan ? decode_half<Extreme<Most, true, false>>(d, s, in)
        : decode_half<Extreme<Most, false, false>>(d, s, in);
}

}  // namespace

void add_half(std::vector<Row>& rows) {
    const char* family = "16-bit floating point";
    const auto row = [&](Opcode opcode, const char* required, const char* allowed, const char* first,
                         auto decode, Unit unit = Unit::kFloat) {
        rows.push_back(
            {family, opcode, modifiers(required), modifiers(allowed), types(first), {}, unit, decode, ""});
    };
    row(Opcode::kAdd, "", "rn ftz sat", "f16 f16x2", decode_half<HalfAdd>);
    row(Opcode::kAdd, "", "rn", "bf16 bf16x2", decode_half<HalfAdd>);
    row(Opcode::kSub, "", "rn ftz sat", "f16 f16x2", decode_half<HalfSub>);
    row(Opcode::kSub, "", "rn", "bf16 bf16x2", decode_half<HalfSub>);
    row(Opcode::kMul, "", "rn ftz sat", "f16 f16x2", decode_half<Mul>);
    row(Opcode::kMul, "", "rn", "bf16 bf16x2", decode_half<Mul>);
    row(Opcode::kFma, "rn", "ftz sat relu", "f16 f16x2", decode_half<Fma>);
    row(Opcode::kFma, "rn", "relu", "bf16 bf16x2", decode_half<Fma>);
    row(Opcode::kNeg, "", "ftz", "f16 f16x2", decode_half<Neg>);
    row(Opcode::kNeg, "", "", "bf16 bf16x2", decode_half<Neg>);
    row(Opcode::kAbs, "", "ftz", "f16 f16x2", decode_half<Abs>);
    row(Opcode::kAbs, "", "", "bf16 bf16x2", decode_half<Abs>);
    row(Opcode::kMin, "", "ftz NaN xorsign abs", "f16 f16x2", decode_half_extreme<false>);
    row(Opcode::kMin, "", "NaN xorsign abs", "bf16 bf16x2", decode_half_extreme<false>);
    row(Opcode::kMax, "", "ftz NaN xorsign abs", "f16 f16x2", decode_half_extreme<true>);
    row(Opcode::kMax, "", "NaN xorsign abs", "bf16 bf16x2", decode_half_extreme<true>);
    row(Opcode::kEx2, "approx", "", "f16 f16x2", decode_half<Ex2>, Unit::kSpecial);
    row(Opcode::kEx2, "approx ftz", "", "bf16 bf16x2", decode_half<Ex2>, Unit::kSpecial);
    row(Opcode::kTanh, "approx", "", "f16 f16x2 bf16 bf16x2", decode_half<Tanh>, Unit::kSpecial);
}

}  // namespace smt::runtime::device::simulated
