// The parameters of each policy, with the reasons for the defaults.
#pragma once

#include "profiler/models/utilization.h"
#include "runtime/schedule/aging.h"
#include "runtime/schedule/policies/level_control.h"
#include "runtime/schedule/requests.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

// Kernels that take no longer alone get no quotas while all are so short. A launch with quotas costs 50 us
// more: a fifth of this, about as much as quotas gain at best.
inline constexpr Duration kShortKernel = std::chrono::microseconds(250);

// Crowds of kernels that take no longer alone run at the same time under policies that give the GPU to one at
// a time. A launch that waits for its turn begins 50 us later than one that goes with the driver, and those
// of few CTAs leave multiprocessors idle; both are some per cent of a kernel of a millisecond.
inline constexpr Duration kShortJob = std::chrono::milliseconds(3);

struct HpfKnobs {
    bool spatial = true;  // stop only as many SMs as needed; false: all of them
    int extra_sms = 0;    // beyond those needed, as in FLEP 6.4
    // A kernel that would get the remaining SMs waits instead if the urgent kernel takes no longer than this:
    // a table would cost the rest of its launch and the next launch more. 0: never, as in the paper.
    Duration short_job = std::chrono::microseconds(100);
    // So many kernels of one priority that are all short run as they are. Two are ordered: the shorter one
    // gains most then.
    size_t crowd = 3;
    Duration short_kernel = kShortJob;  // 0 is the paper's
    AgingKnobs aging = {};              // among kernels of one priority
};

struct FairKnobs {
    double max_overhead = 0.10;  // of the time, spent on stopping
    // Time until the next tenant's blocks run, beyond the measured cost of stopping. Measured: without it 11
    // % of the time is lost where 10 % are allowed.
    Duration resume = std::chrono::microseconds(10);
    // Lower bound of T. Below it, deciding costs more than stopping.
    Duration shortest = std::chrono::microseconds(100);
    // A tenant keeps its turn through idle times of this length, or longer ones once learnt (idle_grace.h).
    Duration idle_grace = std::chrono::microseconds(200);
    // So many tenants whose kernels are all short run at the same time. 0 for `short_kernel` is the paper's.
    size_t crowd = 3;
    Duration short_kernel = kShortJob;
};

struct ShareKnobs {
    // How far ahead a tenant may get before it is held back, in time that the others need to catch up. Long
    // enough that decisions and stops cost little; ten of them are 20 ms, and shares hold over that.
    Duration lead = std::chrono::milliseconds(2);
    double max_overhead = 0.10;  // a tenant is held back for so much longer than its stop takes: 10 times
    // Time until a tenant's blocks run again, beyond the measured cost of stopping, as under fair.
    Duration resume = std::chrono::microseconds(10);
    // A tenant without work for this time holds no other back. Gaps between two kernels of a program that
    // waits for nothing are shorter, and longer ones are worth a start of the others.
    Duration gap = std::chrono::microseconds(100);
    // Idle times up to `pause` are pauses of a program that is at work: between two steps, or for a result.
    // What others receive meanwhile is made up for, by twice the lead at most, if pauses are no more than
    // `pauses` of the time with work, over `history`. A program that pauses more does not want the GPU.
    Duration pause = std::chrono::milliseconds(2), history = std::chrono::milliseconds(100);
    double pauses = 0.25;
    // Others are held back for at most so many times what a tenant behind needs to catch up. What is still
    // missing then is written off: the tenant cannot use the time.
    double patience = 2;
    // A tenant that receives at least this part of the time in which it has work, beside others, is not
    // slowed down by them: within the error of what is learnt of kernels. So it is in `windows` in a row: the
    // one of two launches that came first gets all that it can use for as long as it takes, if it fills the
    // GPU.
    double slowed = 0.95;
    Duration window = std::chrono::milliseconds(5);  // some hundred launches
    int windows = 8;
    // A tenant for which more than this part was guessed, or of which it was not measured lately how far off
    // what is known is, is alone for `trial`: time for a measurement (dispatch/gpu_time.h), or a part of a
    // step of a training. Trials are 5 % of the time at first, less where they teach nothing, and 1 % where
    // the last two measurements `agree`. In a trial the tenant gets done what it does alone; so all together
    // lose only what running at the same time gains.
    double guessed = 0.03, agree = 0.02;
    Duration trial = std::chrono::milliseconds(20);
    Duration between_trials = std::chrono::milliseconds(400), between_known = std::chrono::seconds(2);
    // Decisions are at least so far apart, if nothing happens.
    Duration tick = std::chrono::microseconds(100);
};

struct SloKnobs {
    LevelKnobs level = {};
    PauseKnobs pause = {};
    // Work that best-effort tenants may have with the driver beside a request. Less leaves the GPU idle while
    // the dispatcher is at other things; more of it would go on where it was launched behind the request.
    Duration ahead = std::chrono::microseconds(400);
    // What holds between requests does so for this time behind one. Services that are at work at all have
    // requests more often.
    Duration sticky = std::chrono::seconds(1);
    // Unmanaged kernels with longer blocks, which a stop waits for, leave one multiprocessor in `kept_free`
    // to the next request, as under priority and for its reasons.
    Duration long_block = std::chrono::microseconds(100);
    int kept_free = 4;
    // A request is one by itself if best-effort tenants were stopped within this time of its begin, or within
    // an eighth of its time; or after so many requests in which they were not.
    Duration stops = std::chrono::microseconds(500);
    int not_stopped = 32;
    // Requests of a session that do not count: code is loaded, clocks rise.
    int first = 8;
    // One request in so many has the best-effort tenants stopped, where that is quick, so that the time by
    // itself stays known: 2 % of what they get beside requests.
    int between_samples = 50;
    // How often a request with best-effort work beside it is looked at, at most and at least. It is looked at
    // when what it may lose would be used up, if it made no progress.
    Duration look = std::chrono::microseconds(500), soonest_look = std::chrono::microseconds(50);
    // Above level 0 a kernel that is over within this part of what the request may lose is not stopped.
    double let_end = 0.25;
    // A best-effort tenant without work for so long is no part of the company that levels are learnt for.
    Duration gone = std::chrono::seconds(1);
    // Requests that a status goes by.
    size_t shown = 200;
};

// What policies try out while programs run (exploration.h).
struct ExplorationKnobs {
    // Of the time, in trials, until all is known: 5 % are lost at most for the seconds that it takes, as a
    // trial is work that is done, too. 0: nothing is tried.
    double part = 0.05;
    // Of one kernel: stops of all others, and the slice.
    Duration longest_trial = std::chrono::milliseconds(10);
    // Of two: a window, of which a slow pair needs more.
    Duration longest_window = std::chrono::milliseconds(60);
    // Of a slice: workers take some microseconds to begin; and others wait.
    Duration least_sample = std::chrono::microseconds(200), longest_sample = std::chrono::milliseconds(4);
    int tries = 3;                         // of what teaches nothing
    Duration short_kernel = kShortKernel;  // quotas would bring these nothing
};

struct GreedyKnobs {
    Duration short_kernel = kShortKernel;  // 0 is the paper's
    // For kernels of which not one CTA fits beside the others.
    AgingKnobs aging = {.starvation_timeout = std::chrono::milliseconds(10),
                        .boost = std::chrono::milliseconds(10)};
};

struct SliceKnobs {
    double overhead = 0.02;                        // p % of Kernelet 4.1
    profiler::models::PruneThresholds prune = {};  // alpha_p, alpha_m
    // True, the paper's form: balanced blocks, which end together, in slices. False: the blocks with the
    // largest profit, and no slices. False never gains less. Measured in a model GPU: 1.63 to 1.72 of one
    // kernel's throughput instead of 1.28 (tests/policy/virtual_time_test.cpp).
    bool slices = false;
    // Pairs with less profit are not run. Measured: the model is off by 0.08 on average
    // (docs/results.md#profit-error). Experiments with pairs of less expected profit made four programs
    // slower, even where unprofitable pairs were given up (docs/results.md#queue-tried; the model knew R_m
    // alone). With 0.1, the best pair of a model GPU, which gains 0.22, is not found.
    double least_profit = 0.05;
    // The same bound for measured pairs, where the model's error does not apply. It covers the uncertainty of
    // a window of a few rounds of blocks, the cost of starting and stopping a pair, and the ragged end of a
    // launch, which only the times alone contain (3 % of launches of eight rounds). The value is an estimate,
    // not measured on hardware. Kernelet's OPT has no such bound.
    double least_measured = 0.02;
    // An idle kernel of a pair keeps its place for this time while the other one works.
    Duration idle_grace = std::chrono::microseconds(500);
    AgingKnobs aging = {.starvation_timeout = std::chrono::milliseconds(500)};  // a turn means a worse pair
    ExplorationKnobs exploration = {};
};

struct CompactKnobs {
    Duration short_kernel = kShortKernel;  // 0 is the paper's
    // An idle tenant keeps its place for this time, as it keeps its turn under fair.
    Duration idle_grace = std::chrono::microseconds(200);
    AgingKnobs aging = {};
    ExplorationKnobs exploration = {};
};

}  // namespace smt::runtime::schedule
