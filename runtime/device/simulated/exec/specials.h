// Where the special registers of a warp and of its CTA lie: areas of 32 lanes each, filled in once.
#pragma once

#include "runtime/device/simulated/exec/code.h"

namespace smt::runtime::device::simulated {

// 32 bits a lane.
enum class WarpValue : uint32_t {
    kTidX,
    kTidY,
    kTidZ,
    kLane,
    kWarp,
    kMaskEq,
    kMaskLe,
    kMaskLt,
    kMaskGe,
    kMaskGt,
    kCount
};
enum class CtaValue : uint32_t {
    kNtidX,
    kNtidY,
    kNtidZ,
    kCtaX,
    kCtaY,
    kCtaZ,
    kNctaX,
    kNctaY,
    kNctaZ,
    kWarps,
    kSm,
    kSms,
    kGridLow,
    kGridHigh,
    kSharedTotal,
    kSharedDynamic,
    kDynamicBase,
    kEnvironment1,
    kEnvironment2,
    kReserved1,
    kReservedEnd,
    kReservedCap,
    kZero,
    kOne,
    kCount
};

// Shared memory that the system keeps for itself, in front of the kernel's own, as on an H100. The part that
// is in use, by cooperative groups, has two halves.
inline constexpr uint32_t kReservedBytes = 0x400;
inline constexpr uint32_t kReservedUsed = 0x120;

inline constexpr uint32_t kValueBytes = 4 * kLanes;
inline Slot slot_of(WarpValue value) {
    return {Slot::Base::kWarp, static_cast<uint32_t>(value) * kValueBytes};
}
inline Slot slot_of(CtaValue value) { return {Slot::Base::kCta, static_cast<uint32_t>(value) * kValueBytes}; }

}  // namespace smt::runtime::device::simulated
