// Many GPUs in virtual time, each under a policy of its own, to which a rule sends the tenants that arrive.
//
// A tenant that finds no room waits. Those that wait are asked for in the order in which they came: one that
// is large holds up smaller ones behind it, and does not starve. It keeps its memory to its end, and is never
// moved. What `smt run --gpu any` sees of a GPU is what it would see: memory set aside for tenants, their
// number, and how busy they kept the multiprocessors lately.
//
// Between arrivals the fleet goes on by steps, at the end of which it notices tenants' ends. `smt status`
// looks back five seconds at programs that last minutes; recordings are short, so here a tenth of the mean
// time of a tenant stands for these.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/fleet/rules.h"
#include "tools/fleet/workload.h"

namespace smt::fleet {

struct Placement {
    std::optional<size_t> gpu;  // nothing: no GPU could ever hold it, and it is refused
    double placed_ns = 0, ended_ns = 0;
};

struct Outcome {
    std::vector<Placement> placements;  // by job
    double gpus_in_use = 0;             // mean until the last arrival
    double unusable_memory = 0;         // of what is free, on GPUs too full for the job that comes; mean
};

Outcome run_fleet(const Workload& workload, std::string_view policy, const Rule& rule);

struct Figures {
    size_t placed = 0, refused = 0, waited = 0;
    double mean_wait_ns = 0;                      // of those that waited
    double antt = 0, p50 = 0, p99 = 0, most = 0;  // slowdown: from arrival to end, by the time alone
    double stp = 0;                               // times alone of all jobs, by the makespan
    double makespan_ns = 0;                       // from the first arrival to the last end
};

Figures figures_of(const Workload& workload, const Outcome& outcome);

}  // namespace smt::fleet
