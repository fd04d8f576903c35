// Which numbers of CTAs are worth giving to a kernel, and how long it still has to go: the profile of
// Adaptive Simultaneous Multi-tenancy for GPUs (Bashizade, Li and Lebeck), section 3.5.
//
// A configuration is a number of CTAs on each multiprocessor and the time that the kernel takes with it,
// alone. Sorted by CTAs, only those are kept that are faster than every smaller one: more CTAs for the same
// time would take room from others for nothing. The smallest always stays: the paper's policy starts there.
//
//     prune({{1, 80}, {2, 40}, {4, 40}, {3, 45}, {6, 30}})  ->  {1, 80}, {2, 40}, {6, 30}
//
// How much of its throughput with `most` CTAs a kernel has alone with fewer, for who goes by relations (co_schedule.h): between two
// numbers that were measured along a line, below the least one along a line from nothing.
//
//     relative_throughput({{2, 40}, {4, 20}, {6, 25}}, 6)  ->  0.3125, 0.625, 0.9375, 1.25, 1.125, 1
//
// The time that is left with c CTAs beside others (equation 1), from its time T_i^c alone and its progress in
// blocks, not in time, which says nothing about a kernel that shares the device:
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

// Of several with as many CTAs the fastest counts.
std::vector<Configuration> prune(std::vector<Configuration> configurations);

// Of 1, 2, ... `most` CTAs. `configurations`: by CTAs, ascending, with each number once. Empty: they are not, or `most` was not measured.
std::vector<double> relative_throughput(const std::vector<Configuration>& configurations, int most);

// In the unit of `alone`. 0 when all blocks have run, or there are none.
double remaining_time(double alone, uint64_t blocks, uint64_t blocks_executed);

}  // namespace smt::profiler::models
