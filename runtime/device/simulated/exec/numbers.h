// Floating-point formats taken apart and put together exactly, in integers: every conversion and
// rounding mode of PTX without a word about what the host's unit can do.
//
//   value = significand * 2^(exponent - 63), bit 63 of the significand set
#pragma once

#include <bit>
#include <cstdint>

namespace smt::runtime::device::simulated {

enum class Rounding : uint8_t { kNearestEven, kTowardZero, kDown, kUp, kNearestAway };

struct Format {
    int exponent_bits;
    int fraction_bits;
    constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    constexpr int width() const { return 1 + exponent_bits + fraction_bits; }
    constexpr uint64_t infinity() const { return ((1ull << exponent_bits) - 1) << fraction_bits; }
    constexpr uint64_t sign() const { return 1ull << (width() - 1); }
    constexpr uint64_t largest() const { return infinity() - 1; }
};
inline constexpr Format kHalf{5, 10};
inline constexpr Format kBrain{8, 7};
inline constexpr Format kTensor{8, 10};  // tf32, without the 13 bits below
inline constexpr Format kSingle{8, 23};
inline constexpr Format kDouble{11, 52};

struct Number {
    enum class Kind : uint8_t { kZero, kFinite, kInfinite, kNan };
    Kind kind = Kind::kZero;
    bool negative = false;
    bool sticky = false;  // something non-zero lies below the significand
    int exponent = 0;
    uint64_t significand = 0;
};

Number unpack(uint64_t bits, Format format);
Number from_integer(uint64_t magnitude, bool negative);
// Rounded to the format; NaN becomes all ones below the sign (as PTX has it for .f16 and .f32) or,
// for .f64, the quiet NaN. saturate_finite: overflow becomes the largest finite number.
uint64_t pack(const Number& number, Format format, Rounding rounding, bool saturate_finite = false);

// To an integer of the width, saturated. NaN is the caller's matter (0 is returned).
uint64_t to_integer(const Number& number, Rounding rounding, int width, bool is_signed);
// Rounded to an integral value that stays floating point.
Number to_integral(const Number& number, Rounding rounding);

float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);  // to nearest even
uint16_t double_to_half(double value);
inline float brain_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t float_to_brain(float value);  // to nearest even
uint16_t double_to_brain(double value);

// The sum rounded to odd, so that rounding it once more to a narrower format is exact.
double add_to_odd(double a, double b);

}  // namespace smt::runtime::device::simulated
