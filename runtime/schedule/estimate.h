// What is taken for what is not known of a kernel, the same under every policy.
//
// - Limits of an SM that are 0 are endless.
// - A CTA of unknown resources takes an equal part of the SM: a fourth of everything where four fit. If it is
//   not known how many fit, one does.
// - Time left, alone and with all the CTAs that fit: `remaining`; else `predicted`, less the part of the
//   blocks that are done; else the profile's fastest configuration likewise; else kBlock for each round of
//   blocks; else, for a kernel of which not even the blocks are known, kLaunch.
// - What it costs to stop it: what that took lately; else the profile's; else kPreemption.
// - Time left with fewer CTAs: from the profile (equation 1 of Adaptive Simultaneous Multi-tenancy, 3.5);
// else
//   in proportion to the CTAs.
#pragma once

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

// Priors, of which only the order of magnitude matters: they rank kernels until those have profiles.
inline constexpr double kBlockNs =
    10'000;                               // between an element-wise kernel's few microseconds and a heavy 100
inline constexpr double kLaunchNs = 1e6;  // longer than most launches: what is known to be short goes first
inline constexpr double kPreemptionNs = 50'000;  // a few blocks' time
inline constexpr double kSliceNs = 50'000;       // a launch with quotas instead of one that flows: some 40 us on an H200 (docs/results.md#quotas-launch)

Resources limits_of(const Device& device);
Resources cta_of(const Kernel& kernel, const Resources& limits);
int most_ctas(const Kernel& kernel, const Resources& limits);  // of it alone on an SM; at least 1

// ns; 0 when all blocks are done.
double remaining_ns(const Kernel& kernel, const Device& device, int most);
double remaining_ns(const Kernel& kernel, const Device& device, int most, int ctas);
double configured_ns(const Kernel& kernel, const models::Configuration& configuration);  // equation 1

double preemption_ns(const Kernel& kernel);
uint64_t blocks_left(const Kernel& kernel);  // 0 as well if it is not known how many there are

inline Duration nanoseconds(double ns) {
    return std::chrono::round<Duration>(std::chrono::duration<double, std::nano>(ns));
}

}  // namespace smt::runtime::schedule
