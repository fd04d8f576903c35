#include "runtime/device/simulated/exec/numbers.h"

#include <cmath>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace smt::runtime::device::simulated {
namespace {

// What is cut off: nothing, less than half, half, or more than half of the last kept bit.
enum class Rest : uint8_t { kNothing, kBelowHalf, kHalf, kAboveHalf };

struct Cut {
    uint64_t kept;
    Rest rest;
};

Cut cut(uint64_t significand, bool sticky, int drop) {
    if (drop <= 0) return {significand, sticky ? Rest::kBelowHalf : Rest::kNothing};
    if (drop > 64) return {0, significand != 0 || sticky ? Rest::kBelowHalf : Rest::kNothing};
    uint64_t kept = drop == 64 ? 0 : significand >> drop;
    uint64_t half = 1ull << (drop - 1);
    uint64_t below = significand & (half - 1);
    bool top = (significand & half) != 0;
    bool more = below != 0 || sticky;
    if (top) return {kept, more ? Rest::kAboveHalf : Rest::kHalf};
    return {kept, more ? Rest::kBelowHalf : Rest::kNothing};
}

bool rounds_up(const Cut& cut, bool negative, Rounding rounding) {
    if (cut.rest == Rest::kNothing) return false;
    switch (rounding) {
        case Rounding::kNearestEven:
            return cut.rest == Rest::kAboveHalf || (cut.rest == Rest::kHalf && (cut.kept & 1) != 0);
        case Rounding::kNearestAway:
            return cut.rest >= Rest::kHalf;
        case Rounding::kTowardZero:
            return false;
        case Rounding::kDown:
            return negative;
        case Rounding::kUp:
            return !negative;
    }
    return false;
}

uint64_t overflow(bool negative, Format format, Rounding rounding, bool saturate_finite) {
    bool finite = saturate_finite || rounding == Rounding::kTowardZero ||
                  (rounding == Rounding::kDown && !negative) || (rounding == Rounding::kUp && negative);
    return finite ? format.largest() : format.infinity();
}

}  // namespace

Number unpack(uint64_t bits, Format format) {
    Number number;
    number.negative = (bits & format.sign()) != 0;
    uint64_t fraction = bits & ((1ull << format.fraction_bits) - 1);
    int biased = static_cast<int>((bits >> format.fraction_bits) & ((1ull << format.exponent_bits) - 1));
    if (biased == (1 << format.exponent_bits) - 1) {
        number.kind = fraction != 0 ? Number::Kind::kNan : Number::Kind::kInfinite;
        return number;
    }
    if (biased == 0 && fraction == 0) return number;
    number.kind = Number::Kind::kFinite;
    uint64_t significand = biased == 0 ? fraction : fraction | (1ull << format.fraction_bits);
    int shift = std::countl_zero(significand);
    number.significand = significand << shift;
    number.exponent = (biased == 0 ? 1 : biased) - format.bias() + 63 - format.fraction_bits - shift;
    return number;
}

Number from_integer(uint64_t magnitude, bool negative) {
    Number number;
    if (magnitude == 0) return number;
    int shift = std::countl_zero(magnitude);
    number.kind = Number::Kind::kFinite;
    number.negative = negative;
    number.significand = magnitude << shift;
    number.exponent = 63 - shift;
    return number;
}

uint64_t pack(const Number& number, Format format, Rounding rounding, bool saturate_finite) {
    uint64_t sign = number.negative ? format.sign() : 0;
    switch (number.kind) {
        case Number::Kind::kZero:
            return sign;
        case Number::Kind::kNan:
            return format.width() == 64 ? 0x7ff8000000000000ull : format.sign() - 1;
        case Number::Kind::kInfinite:
            return sign | (saturate_finite ? format.largest() : format.infinity());
        case Number::Kind::kFinite:
            break;
    }
    int lowest = 1 - format.bias();
    bool subnormal = number.exponent < lowest;
    int drop = 63 - format.fraction_bits + (subnormal ? lowest - number.exponent : 0);
    Cut part = cut(number.significand, number.sticky, drop);
    uint64_t kept = part.kept + (rounds_up(part, number.negative, rounding) ? 1 : 0);
    // Without its leading bit the significand adds to the exponent field; a carry into it is right.
    uint64_t biased = subnormal ? 0 : static_cast<uint64_t>(number.exponent + format.bias() - 1);
    if (!subnormal && number.exponent > format.bias())
        return sign | overflow(number.negative, format, rounding, saturate_finite);
    uint64_t bits = (biased << format.fraction_bits) + kept;
    if (bits >= format.infinity()) bits = overflow(number.negative, format, rounding, saturate_finite);
    return sign | bits;
}

Number to_integral(const Number& number, Rounding rounding) {
    if (number.kind != Number::Kind::kFinite || number.exponent >= 63) return number;
    Cut part = cut(number.significand, number.sticky, 63 - number.exponent);
    uint64_t kept = part.kept + (rounds_up(part, number.negative, rounding) ? 1 : 0);
    Number result = from_integer(kept, number.negative);
    result.negative = number.negative;
    return result;
}

uint64_t to_integer(const Number& number, Rounding rounding, int width, bool is_signed) {
    uint64_t all = width == 64 ? ~0ull : (1ull << width) - 1;
    uint64_t most = is_signed ? all >> 1 : all;
    uint64_t least = is_signed && number.negative ? most + 1 : 0;  // magnitude of the smallest
    if (number.kind == Number::Kind::kNan || number.kind == Number::Kind::kZero) return 0;
    Number whole = to_integral(number, rounding);
    if (whole.kind == Number::Kind::kZero) return 0;
    bool huge = whole.kind == Number::Kind::kInfinite || whole.exponent > 63;
    uint64_t magnitude = huge ? ~0ull : whole.significand >> (63 - whole.exponent);
    if (!number.negative) return huge || magnitude > most ? most : magnitude;
    if (huge || magnitude > least) magnitude = least;
    return (~magnitude + 1) & all;
}

float half_to_float(uint16_t bits) {
#if defined(__F16C__)
    return _cvtsh_ss(bits);
#else
    Number number = unpack(bits, kHalf);
    return std::bit_cast<float>(static_cast<uint32_t>(pack(number, kSingle, Rounding::kNearestEven)));
#endif
}

uint16_t float_to_half(float value) {
    if (value != value) return 0x7fff;
#if defined(__F16C__)
    return static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
#else
    return static_cast<uint16_t>(
        pack(unpack(std::bit_cast<uint32_t>(value), kSingle), kHalf, Rounding::kNearestEven));
#endif
}

uint16_t double_to_half(double value) {
    return static_cast<uint16_t>(
        pack(unpack(std::bit_cast<uint64_t>(value), kDouble), kHalf, Rounding::kNearestEven));
}

uint16_t float_to_brain(float value) {
    if (value != value) return 0x7fff;
    uint32_t bits = std::bit_cast<uint32_t>(value);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint16_t double_to_brain(double value) {
    return static_cast<uint16_t>(
        pack(unpack(std::bit_cast<uint64_t>(value), kDouble), kBrain, Rounding::kNearestEven));
}

double add_to_odd(double a, double b) {
    double sum = a + b;
    if (!std::isfinite(sum)) return sum;
    double part = sum - a;
    double error = (a - (sum - part)) + (b - part);
    uint64_t bits = std::bit_cast<uint64_t>(sum);
    if (error == 0 || (bits & 1) != 0) return sum;
    // The exact sum lies between sum and its neighbour on the error's side; the odd one of the two.
    bool away = (error > 0) == (sum > 0);
    return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

}  // namespace smt::runtime::device::simulated
