// What can be set of each policy, and why it is what it is when nobody does.
#pragma once

#include "profiler/models/utilization.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

// Who waits longer than this goes first, for a turn at least: nobody waits for ever behind those whom a
// policy likes better. None of the papers has it. A turn is many times what a stop costs; a tenth of the
// wait, so that those who wait never take more than a tenth from the policy's own choice, each.
struct AgingKnobs {
    Duration starvation_timeout = std::chrono::milliseconds(100);
    Duration boost = std::chrono::milliseconds(10);
};

struct HpfKnobs {
    bool spatial = true;     // stop just enough SMs; false: all of them
    int extra_sms = 0;       // beyond just enough, as in FLEP 6.4
    // Who would be given the rest of the SMs waits rather for a kernel that is over as soon: what the table costs the rest of its launch and the next one. 0: as in the paper.
    Duration short_job = std::chrono::microseconds(100);
    AgingKnobs aging = {};  // among kernels of one priority
};

struct FairKnobs {
    double max_overhead = 0.10;  // of the time, for stopping
    // Until the next one's blocks run, beyond what stopping is measured to take. Without it 11 % were lost on an H200 where 10 are allowed.
    Duration resume = std::chrono::microseconds(10);
    // Below this T, deciding costs more than stopping.
    Duration shortest = std::chrono::microseconds(100);
    // A tenant that launches, waits and launches again keeps its turn through such a gap, or a longer one where it takes longer (idle_grace.h).
    Duration idle_grace = std::chrono::microseconds(200);
};

struct GreedyKnobs {
    // Of those of which not one CTA fits beside the others.
    AgingKnobs aging = {.starvation_timeout = std::chrono::milliseconds(10), .boost = std::chrono::milliseconds(10)};
};

struct SliceKnobs {
    double overhead = 0.02;                    // p % of Kernelet 4.1
    profiler::models::PruneThresholds prune = {};  // alpha_p, alpha_m
    // The paper's: of the blocks that fit, those whose slices end together, a slice being so many. False: those with the
    // largest profit, and no slices. Never less, and in a model GPU 1.63 to 1.72
    // of one kernel's throughput for 1.28 (tests/policy/virtual_time_test.cpp).
    bool slices = false;
    // Who would gain less is no pair. On an H200 the model is off by 0.08 on average (docs/results.md#profit-error); when it knew R_m alone, four programs took longer when pairs
    // of which it expected less were tried, too, also where they were given up when they got little done (docs/results.md#queue-tried). With 0.1 the best pair of a model GPU, which gains 0.22, is not seen.
    double least_profit = 0.05;
    // The same of pairs that were measured, where no model can be wrong: what a window of a few rounds of blocks leaves open is not taken for a gain, and to stop and start a pair costs some, which no
    // window has in it; nor has it the ragged end of a launch, which times alone have: 3 % of launches of eight rounds. Judged, not found out on hardware. Kernelet's OPT has no such bound.
    double least_measured = 0.02;
    // One of a pair that has nothing to do keeps its place for so long, while the other works.
    Duration idle_grace = std::chrono::microseconds(500);
    AgingKnobs aging = {.starvation_timeout = std::chrono::milliseconds(500)};   // a turn is a worse pair's
};

struct CompactKnobs {
    // For which a tenant that has nothing to do keeps its place, as its turn under fair.
    Duration idle_grace = std::chrono::microseconds(200);
    AgingKnobs aging = {};
};

}  // namespace smt::runtime::schedule
