// The 16-bit formats as the families see them: bits in, bits out.
#pragma once

#include "runtime/device/simulated/exec/families/floating.h"

namespace smt::runtime::device::simulated {

struct HalfFormat {
    static constexpr Format kFormat = kHalf;
    static float up(uint16_t bits) { return half_to_float(bits); }
    static uint16_t down(float value) { return float_to_half(value); }
    static uint16_t down(double value) { return double_to_half(value); }
};

struct BrainFormat {
    static constexpr Format kFormat = kBrain;
    static float up(uint16_t bits) { return brain_to_float(bits); }
    static uint16_t down(float value) { return float_to_brain(value); }
    static uint16_t down(double value) { return double_to_brain(value); }
};

inline bool is_half(Type type) { return type == Type::kF16 || type == Type::kF16x2; }
inline bool is_packed_half(Type type) { return type == Type::kF16x2 || type == Type::kBf16x2; }

template <class H>
uint16_t flush_half(uint16_t bits) {
    return (bits & H::kFormat.infinity()) == 0 ? static_cast<uint16_t>(bits & 0x8000) : bits;
}

}  // namespace smt::runtime::device::simulated
