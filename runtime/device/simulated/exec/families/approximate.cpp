// Approximate functions. PTX states how far a result may be from the exact one; the host's library is
// nearer than that everywhere, so what is stated for special values is all that needs care.
#include "runtime/device/simulated/exec/families/floating.h"

namespace smt::runtime::device::simulated {
namespace {

template <class F>
Handler approximate_unary(const ptx::Instruction& s, F) {
    if (s.has(Modifier::kFtz))
        return lanewise<float, float>([](float a) { return finish<true, false>(F{}(flush(a))); });
    return lanewise<float, float>([](float a) { return finish<false, false>(F{}(a)); });
}

void approximate_operands(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
}

void decode_function(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    approximate_operands(d, s, in);
    switch (s.opcode) {
        case Opcode::kRcp:
            in.run = approximate_unary(s, [](float a) { return 1 / a; });
            break;
        case Opcode::kSqrt:
            in.run = approximate_unary(s, [](float a) { return std::sqrt(a); });
            break;
        case Opcode::kRsqrt:
            in.run = approximate_unary(
                s, [](float a) { return static_cast<float>(1 / std::sqrt(static_cast<double>(a))); });
            break;
        case Opcode::kSin:
            in.run = approximate_unary(s, [](float a) { return std::sin(a); });
            break;
        case Opcode::kCos:
            in.run = approximate_unary(s, [](float a) { return std::cos(a); });
            break;
        case Opcode::kLg2:
            in.run = approximate_unary(s, [](float a) { return std::log2(a); });
            break;
        case Opcode::kEx2:
            in.run = approximate_unary(s, [](float a) { return std::exp2(a); });
            break;
        default:
            in.run = approximate_unary(s, [](float a) { return std::tanh(a); });
            break;
    }
}

// Of .f64 only the upper word of the operand counts, and only that of the result is given.
double upper_word(double value) {
    return std::bit_cast<double>(std::bit_cast<uint64_t>(value) & ~0xffff'ffffull);
}

double flush_double(double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    return std::bit_cast<double>((bits & 0x7ff0'0000'0000'0000u) == 0 ? bits & 0x8000'0000'0000'0000u : bits);
}

void decode_double(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    approximate_operands(d, s, in);
    in.unit = Unit::kSpecial;
    in.run = s.opcode == Opcode::kRcp
                 ? lanewise<double, double>(
                       [](double a) { return flush_double(upper_word(1 / flush_double(upper_word(a)))); })
                 : lanewise<double, double>([](double a) {
                       return flush_double(upper_word(1 / std::sqrt(flush_double(upper_word(a)))));
                   });
}

void decode_rsqrt_double(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    approximate_operands(d, s, in);
    in.run = lanewise<double, double>([](double a) { return 1 / std::sqrt(a); });
}

// Divisors beyond 2^126 give zero, or NaN under an infinity; the rest divides as usual.
float approximate_divide(float a, float b) {
    if (std::fabs(b) > 0x1p126f && !std::isinf(b)) return std::isinf(a) ? NAN : a * std::copysign(0.0f, b);
    return a / b;
}

void decode_approximate_div(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    read_two(d, s, in, s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    const bool ftz = s.has(Modifier::kFtz);
    if (s.has(Modifier::kFull))
        in.run =
            ftz ? lanewise<float, float, float>(
                      [](float a, float b) { return finish<true, false>(flush(a) / flush(b)); })
                : lanewise<float, float, float>([](float a, float b) { return finish<false, false>(a / b); });
    else
        in.run = ftz ? lanewise<float, float, float>([](float a, float b) {
            return finish<true, false>(approximate_divide(flush(a), flush(b)));
        })
                     : lanewise<float, float, float>(
                           [](float a, float b) { return finish<false, false>(approximate_divide(a, b)); });
}

}  // namespace

void add_approximate(std::vector<Row>& rows) {
    const char* family = "Approximate functions";
    const auto row = [&](Opcode opcode, const char* required, const char* allowed, const char* first,
                         auto decode, const char* note = "") {
        rows.push_back({family,
                        opcode,
                        modifiers(required),
                        modifiers(allowed),
                        types(first),
                        {},
                        Unit::kSpecial,
                        decode,
                        note});
    };
    for (Opcode opcode : {Opcode::kRcp, Opcode::kSqrt, Opcode::kRsqrt, Opcode::kSin, Opcode::kCos,
                          Opcode::kLg2, Opcode::kEx2})
        row(opcode, "approx", "ftz", "f32", decode_function);
    row(Opcode::kTanh, "approx", "", "f32", decode_function);
    row(Opcode::kRcp, "approx ftz", "", "f64", decode_double, "upper words only");
    row(Opcode::kRsqrt, "approx ftz", "", "f64", decode_double, "upper words only");
    row(Opcode::kRsqrt, "approx", "", "f64", decode_rsqrt_double);
    row(Opcode::kDiv, "approx", "ftz", "f32", decode_approximate_div);
    row(Opcode::kDiv, "full", "ftz", "f32", decode_approximate_div);
}

}  // namespace smt::runtime::device::simulated
