// Useful numbers of CTAs for a kernel, and its remaining time: the profile of Adaptive Simultaneous
// Multi-tenancy for GPUs (Bashizade, Li and Lebeck), section 3.5. Pure functions.
//
// A configuration is a number of CTAs on each multiprocessor and the kernel's time with it, alone. Pruning
// sorts configurations by CTAs and keeps those that are faster than every smaller one: more CTAs for the same
// time only take room from other kernels. The smallest one is always kept, since the paper's policy starts
// there.
//
//     prune({{1, 80}, {2, 40}, {4, 40}, {3, 45}, {6, 30}})  ->  {1, 80}, {2, 40}, {6, 30}
//
// Relative throughput is a kernel's throughput alone with fewer CTAs, divided by that with `most` CTAs (for
// co_schedule.h). It is linear between two measured numbers, and linear from 0 below the smallest one.
//
//     relative_throughput({{2, 40}, {4, 20}, {6, 25}}, 6)  ->  0.3125, 0.625, 0.9375, 1.25, 1.125, 1
//
// The remaining time with c CTAs beside other kernels (equation 1) follows from the time T_i^c alone and the
// progress in blocks. Elapsed time would not do: it says nothing about a kernel that shares the device.
//
//     T_m^c = T_i^c * (TB_t - TB_e) / TB_t
#pragma once

#include <cstdint>
#include <vector>

namespace smt::profiler::models {

struct Configuration {
    int ctas_per_sm = 0;
    double nanoseconds = 0;

    bool operator==(const Configuration&) const = default;
};

// Of configurations with equal CTAs the fastest counts.
std::vector<Configuration> prune(std::vector<Configuration> configurations);

// For 1, 2, ... `most` CTAs. `configurations` must be ascending by CTAs, each number once. Empty: they are
// not, or `most` was not measured.
std::vector<double> relative_throughput(const std::vector<Configuration>& configurations, int most);

// In the unit of `alone`. 0 if all blocks have run or there are none.
double remaining_time(double alone, uint64_t blocks, uint64_t blocks_executed);

}  // namespace smt::profiler::models
