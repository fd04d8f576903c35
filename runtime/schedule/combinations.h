// Full combinations of CTAs: with how many CTAs of each, two kernels fill a multiprocessor. No further CTA of
// either kernel fits. They are the candidates of Kernelet 4.4 and the points at which a pair is measured.
// estimate.h defines the resources of a CTA of which nothing is known.
#pragma once

#include <optional>
#include <vector>

#include "profiler/models/co_schedule.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

// Each combination has at least one CTA of each kernel. The order is by the CTAs of the first kernel. Of more
// than kMostCombinations, this returns kMostCombinations that are evenly spread.
inline constexpr size_t kMostCombinations = 8;  // ratios an eighth apart are close enough
std::vector<models::Blocks> combinations(const Kernel& first, const Kernel& second, const Device& device);

// The rate of a kernel with so many CTAs beside so many of another one; null: it is not known.
const Beside* rate_beside(const Profile& profile, const Profile& other, int ctas, int other_ctas);

// The measured co-schedules of two kernels, by their profiles: each combination for which both profiles have
// a rate. `alone` is 1 and `together` has the rates; `cycles` and `imbalance` are not set.
std::vector<models::CoSchedule> measured_together(const Profile& first, const Profile& second);

// A measurement that implies a pipe busier than is possible. Alone, a kernel keeps the issue slots busy for
// PUR of the time and the memory for MUR. At rates r_1 and r_2 both kernels together take r_1 PUR_1 + r_2
// PUR_2 of the issue slots, which is at most 1. A larger sum means that a rate is wrong; such a measurement
// is not used.
struct BeyondPipe {
    const char* pipe;  // "issue slots" or "memory"
    double busy;       // 1.5: one and a half times what the pipe can do
};
// Above 1 because the clock while counting and the clock while measuring differ by some per cent.
inline constexpr double kMostBusy = 1.1;
// Nothing: the measurement is possible, or a kernel was not counted.
std::optional<BeyondPipe> beyond_pipe(const Profile& first, const Profile& second,
                                      const models::CoSchedule& measured);

// Whether so many CTAs of each kernel, at least one, fit on a multiprocessor.
bool fit_together(const models::Blocks& ctas, const Kernel& first, const Kernel& second,
                  const Device& device);

}  // namespace smt::runtime::schedule
