// Estimates that replace what is not known of a kernel, the same under every policy.
//
// - Limits of an SM that are 0 are infinite.
// - A CTA of unknown resources takes an equal part of the SM: a fourth of every resource where four fit. If
//   it is not known how many fit, one fits.
// - Time left, alone and with all the CTAs that fit: `remaining`; else `predicted`, less the part of the
//   blocks that are done; else the profile's fastest configuration, likewise; else kBlockNs for each round of
//   blocks; else, if the number of blocks is not known, kLaunchNs.
// - Cost of stopping a kernel: what recent stops cost; else the profile's; else kPreemptionNs.
// - Time left with fewer CTAs: from the profile (equation 1 of Adaptive Simultaneous Multi-tenancy, 3.5);
//   else inversely proportional to the CTAs.
#pragma once

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

// Priors. They rank kernels until profiles exist, so only the order of magnitude matters.
inline constexpr double kBlockNs =
    10'000;                               // between an element-wise kernel's few us and a heavy kernel's 100
inline constexpr double kLaunchNs = 1e6;  // longer than most launches: known short kernels go first
inline constexpr double kPreemptionNs = 50'000;  // a few blocks' time
// A launch with quotas costs some 40 us more than one in pass-through mode (docs/results.md#quotas-launch).
inline constexpr double kSliceNs = 50'000;

Resources limits_of(const Device& device);
Resources cta_of(const Kernel& kernel, const Resources& limits);
int most_ctas(const Kernel& kernel, const Resources& limits);  // on one SM, alone; 1 to 254

// ns; 0 when all blocks are done.
double remaining_ns(const Kernel& kernel, const Device& device, int most);
double remaining_ns(const Kernel& kernel, const Device& device, int most, int ctas);
double configured_ns(const Kernel& kernel, const models::Configuration& configuration);  // equation 1

double preemption_ns(const Kernel& kernel);
uint64_t blocks_left(const Kernel& kernel);  // also 0 if the number of blocks is not known

inline Duration nanoseconds(double ns) {
    return std::chrono::round<Duration>(std::chrono::duration<double, std::nano>(ns));
}

}  // namespace smt::runtime::schedule
