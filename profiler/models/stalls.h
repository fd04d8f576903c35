// Inputs of the Markov model (markov.h) beyond Kernelet's R_m, from counters of the kernel alone: how long
// its warps wait for memory, and how often they could issue with the scheduler to themselves. Pure functions.
//
// The warps of a scheduler are divided by their state, in warps for each instruction issued, as the hardware
// counts:
//
//     warps / issue = 1 issues + not_selected + pipes + memory + all the rest
//
//     interval  d = warps / issue - not_selected - pipes - memory    between two instructions of a warp
//     stall     S = memory / R_m                                     of a memory instruction
//
// d excludes waits for memory and contention for the scheduler and the pipes.
//
// S is measured under the kernel's own load, u = issue R_m q / B of the memory's rate. The model adds the
// queueing delay itself, L = L_0 + (a_0 N + q - 1) / B with N = u B S (Little's law), so
//
//     latency  L_0 = S (1 - a_0 u) - (q - 1) / B
//
// A pipe that was busy for a part p of the time takes c = p / issue cycles for an instruction.
//
// This holds for any cache hit rate and any number of accesses that a warp has under way, as long as the
// kernel beside it does not change them: cache contention between kernels is not modelled. q is the number of
// requests of an access that reach DRAM, in the model's requests.
//
// For the kernel alone the model then reproduces little more than the counters. It predicts other numbers of
// warps, and pairs.
#pragma once

#include "profiler/models/co_schedule.h"
#include "profiler/models/markov.h"

namespace smt::profiler::models {

// Counters of the kernel alone; means of one warp scheduler while it had warps.
struct Stalls {
    double warps = 0;         // resident
    double issue = 0;         // instructions a cycle
    double not_selected = 0;  // warps ready while another was issued or a pipe was busy, an instruction
    double memory = 0;        // warps that waited for global or local memory, an instruction
    double memory_ratio = 0;  // R_m
    double requests = 0;      // of DRAM, for each memory instruction
    PipeCycles busy{};        // of each pipe, a part of the time
};

struct Waits {
    double interval = 1;  // Units::interval
    double latency = 0;   // Units::latency; 0: no accesses, or not counted
    double requests = 0;  // Units::requests
    PipeCycles pipes{};   // Units::pipes

    bool operator==(const Waits&) const = default;
};

// Sets the kernel's inputs of the model.
void tell(const Waits& waits, KernelModel& kernel);

// `memory` is the scheduler's part, with its part of requests_per_cycle. Returns the defaults if no
// instruction was issued.
Waits waits(const Stalls& stalls, const Memory& memory);

}  // namespace smt::profiler::models
