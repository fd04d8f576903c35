// With how many CTAs of each two kernels share a multiprocessor: full combinations, so that no further CTA of either fits (the
// candidates of Kernelet 4.4, and what is measured of a pair). estimate.h says what is taken for CTAs of which nothing is known.
#pragma once

#include <vector>

#include "profiler/models/co_schedule.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

// With one CTA of each at least, by those of the first; of more than kMostCombinations, so many, evenly spread.
inline constexpr size_t kMostCombinations = 8;   // ratios an eighth apart are close enough
std::vector<models::Blocks> combinations(const Kernel& first, const Kernel& second, const Device& device);

// What was measured of two kernels side by side, by what their profiles say of each other: in each combination for which both have a rate. `alone` is 1, `together`
// the rates; `cycles` and `imbalance` are not told.
std::vector<models::CoSchedule> measured_together(const Profile& first, const Profile& second);

// Whether so many of each fit, one at least.
bool fit_together(const models::Blocks& ctas, const Kernel& first, const Kernel& second, const Device& device);

}  // namespace smt::runtime::schedule
