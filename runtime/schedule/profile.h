// What is known of a kernel with this block shape and class of grid sizes on this device. Each part may be
// missing; every policy says what it does then.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/models/configurations.h"
#include "profiler/models/saturation.h"
#include "profiler/models/utilization.h"

namespace smt::runtime::schedule {

namespace models = profiler::models;

// What Kernelet's model takes of a kernel (profiler/models/co_schedule.h, utilization.h).
struct Mix {
    models::Utilization utilization;    // PUR and MUR
    double memory_ratio = 0;            // R_m: of all instructions
    double uncoalesced_ratio = 0;       // of the memory instructions
    double instructions_per_block = 0;  // of warps; above 0
};

struct Profile {
    // Times alone of a launch of `blocks` blocks, by CTAs on each SM; pruned, as models::prune() leaves them.
    uint64_t blocks = 0;
    std::vector<models::Configuration> configurations;
    // From the decision to stop it until the last worker has gone, and what it costs to go on.
    std::optional<std::chrono::nanoseconds> preemption;
    // What a slice takes longer than its part of the whole launch.
    std::optional<std::chrono::nanoseconds> slice_overhead;
    std::optional<Mix> mix;
    std::optional<models::Footprint> footprint;  // where its throughput saturates
};

}  // namespace smt::runtime::schedule
