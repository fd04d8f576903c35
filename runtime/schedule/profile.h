// What is known of a kernel with this block shape and class of grid sizes on this device. Each part may be
// missing; every policy says what it does then.
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

// What Kernelet's model takes of a kernel (profiler/models/co_schedule.h, utilization.h), and what it can be told beyond that (stalls.h).
struct Mix {
    models::Utilization utilization;    // PUR and MUR
    double memory_ratio = 0;            // R_m: of all instructions
    double uncoalesced_ratio = 0;       // of the memory instructions
    double instructions_per_block = 0;  // of warps; above 0
    std::optional<models::Waits> waits = {};  // where they were counted, too
};

// What was measured of a kernel with so many CTAs on each multiprocessor, beside so many of another.
struct Beside {
    uint64_t other = 0;          // the identity of that one's profile
    int ctas_per_sm = 0;
    int other_ctas_per_sm = 0;
    double rate = 0;             // blocks in a time, as a part of those that it gets done alone with all the CTAs that fit: cIPC / IPC (Kernelet, equation 1)
};

struct Profile {
    // The same for the same kernel, block shape and class of grids in every process; 0: none.
    uint64_t identity = 0;
    // Times alone of a launch of `blocks` blocks, by CTAs on each SM; pruned, as models::prune() leaves them.
    uint64_t blocks = 0;
    std::vector<models::Configuration> configurations;
    std::vector<models::Configuration> by_ctas;   // the same, all that were measured; by CTAs
    // From the decision to stop it until the last worker has gone, and what it costs to go on.
    std::optional<std::chrono::nanoseconds> preemption;
    // What a slice takes longer than its part of the whole launch.
    std::optional<std::chrono::nanoseconds> slice_overhead;
    std::optional<Mix> mix;
    std::optional<models::Footprint> footprint;  // where its throughput saturates
    std::vector<Beside> beside;
};

}  // namespace smt::runtime::schedule
