// The profile of a kernel for one block shape and class of grid sizes on one device. Each part may be
// missing; each policy documents what it does then.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/models/configurations.h"
#include "profiler/models/saturation.h"
#include "profiler/models/stalls.h"
#include "profiler/models/utilization.h"

namespace smt::runtime::schedule {

namespace models = profiler::models;

// The inputs of Kernelet's model (profiler/models/co_schedule.h, utilization.h), and of its extension
// (stalls.h).
struct Mix {
    models::Utilization utilization;          // PUR and MUR
    double memory_ratio = 0;                  // R_m: memory instructions among all
    double uncoalesced_ratio = 0;             // uncoalesced among the memory instructions
    double instructions_per_block = 0;        // warp instructions; above 0
    std::optional<models::Waits> waits = {};  // only where stalls were counted
};

// A measurement of a kernel with so many CTAs on each multiprocessor, beside so many CTAs of another kernel.
struct Beside {
    uint64_t other = 0;  // identity of the other kernel's profile
    int ctas_per_sm = 0;
    int other_ctas_per_sm = 0;
    double rate = 0;      // blocks a time, relative to alone with all CTAs: cIPC / IPC (equation 1)
    bool learnt = false;  // tried for a moment while programs ran (policies/exploration.h), not measured
};

// A number of CTAs on a number of multiprocessors with which the kernel's time is known.
struct Timed {
    int sms = 0;
    int ctas_per_sm = 0;
};

struct Profile {
    // Equal in every process for the same kernel, block shape and class of grids; 0: none.
    uint64_t identity = 0;
    // Times of a launch of `blocks` blocks alone, by CTAs on each SM; pruned by models::prune().
    uint64_t blocks = 0;
    std::vector<models::Configuration> configurations;
    std::vector<models::Configuration> by_ctas;  // all that were measured, unpruned; ascending by CTAs
    // From the decision to stop the kernel until its last worker has left, and the cost of resuming it.
    std::optional<std::chrono::nanoseconds> preemption;
    // Time of a slice beyond its part of the whole launch (dispatch/slice_cost.h).
    std::optional<std::chrono::nanoseconds> slice_overhead;
    std::optional<Mix> mix;
    std::optional<models::Footprint> footprint;  // the point at which throughput saturates
    bool footprint_learnt = false;               // of points of which one at least was learnt, not measured
    std::vector<Timed> timed;
    std::vector<Beside> beside;
};

}  // namespace smt::runtime::schedule
