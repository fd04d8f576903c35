// Floating-point arithmetic of .f32 and .f64.
#include "runtime/device/simulated/exec/families/floating.h"

namespace smt::runtime::device::simulated {
namespace {

// A handler for op on T; op takes and gives T.
template <class T, bool Ftz, bool Sat, class F, class... S>
Handler with(F) {
    return lanewise<T, S...>([](S... s) { return finish<Ftz, Sat>(static_cast<T>(F{}(take<Ftz>(s)...))); });
}

template <class F>
Handler binary(const ptx::Instruction& s, F f) {
    if (s.types[0] == Type::kF64) return with<double, false, false, F, double, double>(f);
    const bool sat = s.has(Modifier::kSat);
    if (s.has(Modifier::kFtz))
        return sat ? with<float, true, true, F, float, float>(f)
                   : with<float, true, false, F, float, float>(f);
    return sat ? with<float, false, true, F, float, float>(f) : with<float, false, false, F, float, float>(f);
}

template <class F>
Handler ternary(const ptx::Instruction& s, F f) {
    if (s.types[0] == Type::kF64) return with<double, false, false, F, double, double, double>(f);
    const bool sat = s.has(Modifier::kSat);
    if (s.has(Modifier::kFtz))
        return sat ? with<float, true, true, F, float, float, float>(f)
                   : with<float, true, false, F, float, float, float>(f);
    return sat ? with<float, false, true, F, float, float, float>(f)
               : with<float, false, false, F, float, float, float>(f);
}

template <class F>
Handler unary(const ptx::Instruction& s, F f) {
    if (s.types[0] == Type::kF64) return with<double, false, false, F, double>(f);
    return s.has(Modifier::kFtz) ? with<float, true, false, F, float>(f)
                                 : with<float, false, false, F, float>(f);
}

void set_unit(const ptx::Instruction& s, Instruction& in) {
    if (s.types[0] == Type::kF64) in.unit = Unit::kDouble;
}

// Operands by their number, and the host's rounding mode if one is given.
bool operands(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    set_unit(s, in);
    in.count = static_cast<uint8_t>(s.operands.size() - 1);
    in.a = d.read(s.operands[1], s.types[0]);
    if (in.count > 1) in.b = d.read(s.operands[2], s.types[0]);
    if (in.count > 2) in.c = d.read(s.operands[3], s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    const int mode = host_rounding(s);
    if (mode < 0) return false;
    in.target = static_cast<uint32_t>(mode);
    in.run = directed(s.opcode, s.types[0], s.has(Modifier::kFtz), s.has(Modifier::kSat));
    return true;
}

void decode_add(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (!operands(d, s, in)) in.run = binary(s, [](auto a, auto b) { return a + b; });
}
void decode_sub(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (!operands(d, s, in)) in.run = binary(s, [](auto a, auto b) { return a - b; });
}
void decode_mul(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (operands(d, s, in)) return;
    in.run =
        s.has(Modifier::kFtz)
            ? binary(s, [](auto a, auto b) { return without_tiny(a * b, static_cast<long double>(a) * b); })
            : binary(s, [](auto a, auto b) { return a * b; });
}
void decode_fma(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (operands(d, s, in)) return;
    in.run = s.has(Modifier::kFtz)
                 ? ternary(s,
                           [](auto a, auto b, auto c) {
                               return without_tiny(std::fma(a, b, c), static_cast<long double>(a) * b + c);
                           })
                 : ternary(s, [](auto a, auto b, auto c) { return std::fma(a, b, c); });
}
void decode_div(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (!operands(d, s, in)) in.run = binary(s, [](auto a, auto b) { return a / b; });
}
void decode_rcp(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (!operands(d, s, in)) in.run = unary(s, [](auto a) { return decltype(a){1} / a; });
}
void decode_sqrt(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (!operands(d, s, in)) in.run = unary(s, [](auto a) { return std::sqrt(a); });
}

// abs and neg change the sign bit; what a NaN becomes PTX leaves open, we keep its payload for .f64.
void decode_abs(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    operands(d, s, in);
    in.run = unary(s, [](auto a) { return std::fabs(a); });
}
void decode_neg(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    operands(d, s, in);
    in.run = unary(s, [](auto a) { return -a; });
}

// ---- min and max: NaN loses against a number unless .NaN is given, and -0 is below +0

template <class T>
bool below(T a, T b) {
    return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}
template <class T>
T least(T a, T b) {
    return a != a ? b : b != b ? a : below(b, a) ? b : a;
}
template <class T>
T most(T a, T b) {
    return a != a ? b : b != b ? a : below(a, b) ? b : a;
}
template <class T>
T nan_of(T a, T b) {
    return a + b;
}  // NaN if one is

struct Min {
    template <class T>
    T operator()(T a, T b) const {
        return least(a, b);
    }
};
struct Max {
    template <class T>
    T operator()(T a, T b) const {
        return most(a, b);
    }
};
template <class F>
struct OrNan {
    template <class T>
    T operator()(T a, T b) const {
        return a != a || b != b ? nan_of(a, b) : F{}(a, b);
    }
};
// Of the magnitudes, with the exclusive or of the signs.
template <class F>
struct ByMagnitude {
    float operator()(float a, float b) const {
        const bool negative = std::signbit(a) != std::signbit(b);
        const float result = F{}(std::fabs(a), std::fabs(b));
        return result != result ? result : negative ? -result : result;
    }
};

template <class F>
void decode_extreme(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.operands.size() != 3) return d.refuse("the form with three sources is not supported");
    operands(d, s, in);
    const bool nan = s.has(Modifier::kNaN);
    if (s.has(Modifier::kXorsign)) {
        const bool ftz = s.has(Modifier::kFtz);
        using Plain = ByMagnitude<F>;
        using Strict = ByMagnitude<OrNan<F>>;
        if (nan)
            in.run = ftz ? with<float, true, false, Strict, float, float>({})
                         : with<float, false, false, Strict, float, float>({});
        else
            in.run = ftz ? with<float, true, false, Plain, float, float>({})
                         : with<float, false, false, Plain, float, float>({});
        return;
    }
    in.run = nan ? binary(s, OrNan<F>{}) : binary(s, F{});
}

// ---- testp, copysign

template <class T>
bool has_property(T a, Modifier property) {
    switch (property) {
        case Modifier::kFinite:
            return std::isfinite(a);
        case Modifier::kInfinite:
            return std::isinf(a);
        case Modifier::kNumber:
            return a == a;
        case Modifier::kNotanumber:
            return a != a;
        case Modifier::kNormal:
            return std::isnormal(a) || a == 0;
        default:
            return std::fpclassify(a) == FP_SUBNORMAL;
    }
}

template <class T>
void run_testp(Execution& x, const Instruction& in) {
    const T* a = x.at<T>(in.a);
    uint32_t mask = 0;
    for (int i = 0; i < kLanes; ++i)
        mask |= has_property(a[i], static_cast<Modifier>(in.target)) ? 1u << i : 0;
    x.set_predicate(in.d, mask);
}

void decode_testp(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    set_unit(s, in);
    if (s.modifiers.size() != 1) return d.refuse("one property belongs here");
    in.target = static_cast<uint32_t>(s.modifiers[0]);
    in.a = d.read(s.operands[1], s.types[0]);
    in.d = d.write_predicate(s.operands[0]);
    in.run = s.types[0] == Type::kF64 ? run_testp<double> : run_testp<float>;
}

// The sign of a on b, whatever they are.
void decode_copysign(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    operands(d, s, in);
    in.run = for_bits(s.types[0], []<class T>() {
        return lanewise<T, T, T>([](T a, T b) {
            const T sign = T{1} << (8 * sizeof(T) - 1);
            return static_cast<T>((b & ~sign) | (a & sign));
        });
    });
}

}  // namespace

void add_floating(std::vector<Row>& rows) {
    const char* family = "Floating point";
    const auto row = [&](Opcode opcode, const char* required, const char* allowed, const char* first,
                         auto decode, const char* note = "") {
        rows.push_back({family,
                        opcode,
                        modifiers(required),
                        modifiers(allowed),
                        types(first),
                        {},
                        Unit::kFloat,
                        decode,
                        note});
    };
    const char* rounding = "rn rz rm rp";
    const char* single = "rn rz rm rp ftz sat";
    const auto both = [&](Opcode opcode, auto decode) {
        row(opcode, "", single, "f32", decode);
        row(opcode, "", rounding, "f64", decode);
    };
    both(Opcode::kAdd, decode_add);
    both(Opcode::kSub, decode_sub);
    both(Opcode::kMul, decode_mul);
    both(Opcode::kFma, decode_fma);
    both(Opcode::kMad, decode_fma);
    const auto without_sat = [&](Opcode opcode, auto decode) {
        row(opcode, "", "rn rz rm rp ftz", "f32", decode);
        row(opcode, "", rounding, "f64", decode);
    };
    without_sat(Opcode::kDiv, decode_div);
    without_sat(Opcode::kRcp, decode_rcp);
    without_sat(Opcode::kSqrt, decode_sqrt);
    row(Opcode::kAbs, "", "ftz", "f32", decode_abs);
    row(Opcode::kAbs, "", "", "f64", decode_abs);
    row(Opcode::kNeg, "", "ftz", "f32", decode_neg);
    row(Opcode::kNeg, "", "", "f64", decode_neg);
    row(Opcode::kMin, "", "ftz NaN", "f32", decode_extreme<Min>, "two sources");
    row(Opcode::kMin, "xorsign abs", "ftz NaN", "f32", decode_extreme<Min>);
    row(Opcode::kMin, "", "", "f64", decode_extreme<Min>);
    row(Opcode::kMax, "", "ftz NaN", "f32", decode_extreme<Max>, "two sources");
    row(Opcode::kMax, "xorsign abs", "ftz NaN", "f32", decode_extreme<Max>);
    row(Opcode::kMax, "", "", "f64", decode_extreme<Max>);
    row(Opcode::kTestp, "", "finite infinite number notanumber normal subnormal", "f32 f64", decode_testp);
    row(Opcode::kCopysign, "", "", "f32 f64", decode_copysign);
}

}  // namespace smt::runtime::device::simulated
