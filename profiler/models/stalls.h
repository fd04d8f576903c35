// What the Markov model (markov.h) can be told of a kernel beyond Kernelet's R_m, from counters of the kernel alone: how long its warps really
// wait for memory, and how often they could issue if they had the scheduler for themselves. For that a scheduler's warps are
// divided by what they do, in warps for each instruction that is issued (hardware counts it so):
//
//     warps / issue = 1 issues + not_selected + pipes + memory + all the rest
//
//     interval  d = warps / issue - not_selected - pipes - memory    between two instructions of a warp, but for memory and company
//     stall     S = memory / R_m                                     of a memory instruction
//
// S is what it was under the kernel's own load, u = issue R_m q / B of what memory serves. The model adds the queue by itself,
// L = L_0 + (a_0 N + q - 1) / B with N = u B S (Little's law), so
//
//     latency  L_0 = S (1 - a_0 u) - (q - 1) / B
//
// Of a pipe that was busy for a part p of the time an instruction took c = p / issue cycles.
//
// It holds whatever caches answer and however many accesses a warp has under way, as long as the kernel beside it leaves them so:
// what two kernels take from each other in caches is not in it. q is what reaches DRAM of an access, in the model's requests.
//
// A model that is told so says of the kernel alone little more than was counted; what it predicts are other numbers of warps, and pairs.
#pragma once

#include "profiler/models/co_schedule.h"
#include "profiler/models/markov.h"

namespace smt::profiler::models {

// Counted while the kernel ran alone; means of one warp scheduler while it had warps.
struct Stalls {
    double warps = 0;         // resident
    double issue = 0;         // instructions a cycle
    double not_selected = 0;  // warps that were ready when another was issued, or a pipe was not, for each instruction
    double memory = 0;        // warps that waited for global or local memory, for each instruction
    double memory_ratio = 0;  // R_m
    double requests = 0;      // of DRAM, for each memory instruction
    PipeCycles busy{};        // of each pipe, a part of the time
};

struct Waits {
    double interval = 1;  // Units::interval
    double latency = 0;   // Units::latency; 0: there are no accesses, or nothing was counted
    double requests = 0;  // Units::requests
    PipeCycles pipes{};   // Units::pipes

    bool operator==(const Waits&) const = default;
};

// What the model goes by from then on.
void tell(const Waits& waits, KernelModel& kernel);

// `memory` is the scheduler's: its part of requests_per_cycle. Nothing was issued: the defaults.
Waits waits(const Stalls& stalls, const Memory& memory);

}  // namespace smt::profiler::models
