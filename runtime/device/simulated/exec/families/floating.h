// How PTX finishes a floating-point result, and directed rounding.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>

#include "runtime/device/simulated/exec/families/lanes.h"
#include "runtime/device/simulated/exec/numbers.h"

namespace smt::runtime::device::simulated {

inline float flush(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    return std::bit_cast<float>((bits & 0x7f80'0000u) == 0 ? bits & 0x8000'0000u : bits);
}

// .f32 results that are NaN are all ones below the sign.
inline float canonical(float value) { return value != value ? std::bit_cast<float>(0x7fff'ffffu) : value; }
inline double canonical(double value) { return value; }

template <bool Ftz>
float take(float value) {
    return Ftz ? flush(value) : value;
}
template <bool Ftz>
double take(double value) {
    return value;
}

// To [0, 1]; NaN becomes +0.
template <class T>
T saturated(T value) {
    return value > 0 ? (value < 1 ? value : T{1}) : T{0};
}

template <bool Ftz, bool Sat, class T>
T finish(T value) {
    if (Sat) value = saturated(value);
    return canonical(take<Ftz>(value));
}

// The host's name for a rounding modifier; -1: to nearest even, or none given.
inline int host_rounding(const ptx::Instruction& s) {
    if (s.has(Modifier::kRz)) return FE_TOWARDZERO;
    if (s.has(Modifier::kRm)) return FE_DOWNWARD;
    if (s.has(Modifier::kRp)) return FE_UPWARD;
    return -1;
}

// d = op(a, b, c) rounded as said, in directed.cpp, which is compiled to heed the host's rounding
// mode. Null: no such operation on the type.
Handler directed(Opcode opcode, Type type, bool ftz, bool sat);

}  // namespace smt::runtime::device::simulated
