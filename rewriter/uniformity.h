// What the threads of a warp, or of a block, have in common in a value, and what arithmetic leaves of it.
// Integers wrap at a multiple of 32, so what holds of a number holds of what its low bits are.
//
//   blockIdx.x                                   kSame
//   blockDim.x                                   kSame32, where blocks are whole warps wide
//   threadIdx.x                                  kLanes in a warp of such a block; kDiffers in a block
//   blockIdx.x * blockDim.x + threadIdx.x        kLanes
//   (blockIdx.x * blockDim.x + threadIdx.x) / 32 kSame: the number of the warp
#pragma once

#include <cstdint>

namespace smt::rewriter {

enum class Uniformity : uint8_t {
    kUnknown,  // nothing was written to it yet
    kSame32,   // the same in all, and a multiple of 32
    kSame,
    kLanes,  // a multiple of 32 that is the same in all, and the lane's number
    kDiffers,
};

inline constexpr uint64_t kWarpThreads = 32;
inline constexpr uint64_t kWarpBits = 5;  // a shift by so many drops the lane's number

constexpr bool may_differ(Uniformity a) { return a == Uniformity::kLanes || a == Uniformity::kDiffers; }

constexpr Uniformity uniformity_of_integer(uint64_t value) {
    return value % kWarpThreads == 0 ? Uniformity::kSame32 : Uniformity::kSame;
}

// Of a value that is one or the other.
constexpr Uniformity join(Uniformity a, Uniformity b) {
    if (a == b || b == Uniformity::kUnknown) return a;
    if (a == Uniformity::kUnknown) return b;
    return may_differ(a) || may_differ(b) ? Uniformity::kDiffers : Uniformity::kSame;
}

// Of what is computed from both, whatever it is.
constexpr Uniformity plain(Uniformity a, Uniformity b = Uniformity::kSame) {
    return may_differ(a) || may_differ(b) ? Uniformity::kDiffers : Uniformity::kSame;
}

// Also of `or` and `xor`: the lane's bits meet zeros.
constexpr Uniformity sum(Uniformity a, Uniformity b) {
    using enum Uniformity;
    if (a == kSame32 && b == kSame32) return kSame32;
    if ((a == kLanes && b == kSame32) || (a == kSame32 && b == kLanes)) return kLanes;
    return plain(a, b);
}

constexpr Uniformity difference(Uniformity a, Uniformity b) {
    return may_differ(b) ? Uniformity::kDiffers : sum(a, b);
}

// Also of `and`.
constexpr Uniformity product(Uniformity a, Uniformity b) {
    const bool aligned = a == Uniformity::kSame32 || b == Uniformity::kSame32;
    return aligned && !may_differ(a) && !may_differ(b) ? Uniformity::kSame32 : plain(a, b);
}

}  // namespace smt::rewriter
