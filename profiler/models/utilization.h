// Utilization of pipeline and memory by a kernel, and whether two kernels are too alike to gain from sharing
// multiprocessors: the pruning of Kernelet (Zhong and He), section 4.3. Pure functions.
//
//     PUR = Instruction_Executed / (Time * Frequency * Peak_IPC)
//     MUR = (Dram_Reads + Dram_Writes) / (Time * Frequency * Peak_MPC)
//     R_m = memory instructions / all instructions                        (end of section 4.4)
//
// Counts are of the whole device, so peaks are of the whole device as well; with counters of one
// multiprocessor, use its peaks. A ratio above 1 means that a peak is set too low (the paper prints 1.68).
//
// A pair is pruned if PUR and MUR are both close. The paper's text says "or". But its table 6 counts the
// pruned pairs of its table 4, and only "and" gives these numbers: with a_p = 1.0 and a_m = 0.015, "or" would
// prune all 28 pairs, and the table says 4. The text also asks for larger thresholds where every pair is
// pruned; those would prune more, so it must mean smaller ones.
//
//     utilization({.instructions = 3'000'000, .dram_reads = 1000, .nanoseconds = 10'000},
//                 {.hertz = 1e9, .instructions_per_cycle = 528, .requests_per_cycle = 80})    // PUR 0.57
#pragma once

#include <cstdint>

namespace smt::profiler::models {

// Counters of `blocks` blocks that ran for `nanoseconds`. Sums over several launches are valid.
struct Counters {
    int64_t blocks = 0;
    int64_t nanoseconds = 0;
    int64_t instructions = 0;              // warp instructions
    int64_t memory_instructions = 0;       // of those, to global memory
    int64_t uncoalesced_instructions = 0;  // of the memory instructions
    int64_t dram_reads = 0;                // requests
    int64_t dram_writes = 0;

    bool operator==(const Counters&) const = default;
};

struct Peak {
    double hertz = 0;                   // of the multiprocessors' clock
    double instructions_per_cycle = 0;  // Peak_IPC
    double requests_per_cycle = 0;      // Peak_MPC
};

struct Utilization {
    double pur = 0;
    double mur = 0;
};

// The defaults are the paper's for a C2050 (section 5.4); it has 0.4 and 0.105 for a GTX680.
struct PruneThresholds {
    double pur = 0.4;  // alpha_p
    double mur = 0.1;  // alpha_m
};

// These return 0 where nothing was counted.
Utilization utilization(const Counters& counters, const Peak& peak);
double memory_ratio(const Counters& counters);            // R_m
double uncoalesced_ratio(const Counters& counters);       // of the memory instructions
double instructions_per_block(const Counters& counters);  // I_K

bool too_alike(const Utilization& first, const Utilization& second, const PruneThresholds& threshold = {});

}  // namespace smt::profiler::models
