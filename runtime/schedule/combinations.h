// With how many CTAs of each two kernels share a multiprocessor: full combinations, so that no further CTA of either fits (the
// candidates of Kernelet 4.4, and what is measured of a pair). estimate.h says what is taken for CTAs of which nothing is known.
#pragma once

#include <optional>
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

// What was measured keeps a pipe busier than a pipe can be: each kernel alone keeps the issue slots busy for PUR of the time and the memory for MUR, so at rates r_1 and r_2
// both together take r_1 PUR_1 + r_2 PUR_2 of the issue slots, which is 1 at most. Then a rate is wrong, and nothing goes by the two.
struct BeyondPipe {
    const char* pipe;   // "issue slots" or "memory"
    double busy;        // 1.5: one and a half of it
};
// The clock of the counting and that of the measuring differ by some per cent.
inline constexpr double kMostBusy = 1.1;
// Nothing: it can be, or not both kernels were counted.
std::optional<BeyondPipe> beyond_pipe(const Profile& first, const Profile& second, const models::CoSchedule& measured);

// Whether so many of each fit, one at least.
bool fit_together(const models::Blocks& ctas, const Kernel& first, const Kernel& second, const Device& device);

}  // namespace smt::runtime::schedule
