// Tenants of recordings, repeated as an arriving workload.
//
// Which tenant comes, how often it does what it did in its recording (1, 2, 4 or 8 times), how much memory it
// needs (`kLeast` to `kMost` of a GPU, small ones as often as large ones in each octave: a recording does not
// say) and when it comes (exponential times between) is drawn from the seed. The same seed gives the same
// workload on one machine.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/fleet/tenants.h"

namespace smt::fleet {

struct WorkloadKnobs {
    size_t gpus = 0;
    size_t jobs = 0;
    uint64_t seed = 1;
    double load = 0.8;  // GPU time that comes in a time, of what all GPUs have
    uint64_t gpu_memory = 80ull << 30;
};

struct Job {
    size_t tenant = 0;  // index in Workload::tenants
    uint64_t rounds = 1;
    uint64_t memory = 0;  // bytes
    double arrives_ns = 0;
    double alone_ns = 0;  // on a GPU of its own
};

struct Workload {
    Device device;
    size_t gpus = 0;
    uint64_t gpu_memory = 0;
    std::vector<Tenant> tenants;
    std::vector<Job> jobs;  // by arrival
};

// `tenants`: at least one.
Workload spread(const Device& device, std::vector<Tenant> tenants, const WorkloadKnobs& knobs);

}  // namespace smt::fleet
