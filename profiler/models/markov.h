// Instructions a cycle of a multiprocessor with one warp scheduler and one or two resident kernels: the
// Markov model of Kernelet (Zhong and He), section 4.4. It covers the mutual effects of two kernels: one
// issues while the other waits for memory, and both wait longer for a busy memory. Pure functions.
//
// The multiprocessor holds units: warps, or thread blocks, which the paper uses to keep the chain small. A
// unit is ready, or idle: stalled by a memory access. Time is divided into rounds, in which the scheduler
// serves each ready unit once. The state is the number of idle units of each kernel. From one round to the
// next
//
//     a ready unit stalls           with P_r->i = R_m
//     an idle one becomes ready     with P_i->r = R / L, at most 1
//
// each independently. R is the round's duration: one cycle for each warp of the ready units (W - i in the
// paper), and one if there are none. L is the latency of an access. Equation 2 lists the combinations that
// lead from one state to another; adding the units one by one gives the same sum. Two kernels are independent
// given the state, so their product applies. The steady state pi (equation 3) weighs the rounds:
//
//     IPC_K = sum(pi * issued_K) / sum(pi * R)       equations 4 (one kernel), 5 and 6 (two)
//
// Uncoalesced accesses split the idle state into two, one for each kind of access. A kernel with both kinds
// has (n + 1)(n + 2) / 2 states where another has n + 1.
//
// What the paper leaves open, and the choice made here:
// - P_i->r is printed as (W - I) / L. That is 0 when all units are idle, and no unit would ever run again.
//   The round then lasts one cycle, as the paper says below equation 3; so P_i->r is R / L.
// - L is printed as L_0 + B / (a_0 S_i) + b_0. That falls with the requests under way, is infinite for none,
//   and is not the linear model that the text announces. Here L = L_0 + (a_0 N + q - 1) / B, with b_0
//   included in L_0. N is the number of requests under way in this state, of both kernels, and an access ends
//   with the last of its q requests. With a_0 = 1 memory never serves more than B requests a cycle (Little's
//   law), hence the default.
// - Equation 5's denominator is printed with (i, i); it is equation 6's.
// - A block as the unit: all its warps issue one instruction in a round, and stall together. So it counts for
//   its warps in R, in the instructions issued, and in N. With `warps` 1 the model is the paper's model of
//   warps.
//
// Extension of the paper, for kernels with more counters than R_m (stalls.h). The defaults give the model
// above:
// - `interval`, d: a ready warp does not issue in every cycle even if the scheduler is free, because it waits
//   for its own last result, a unit or a barrier. So d cycles lie between two of its instructions. A round
//   lasts at least d cycles, even if all ready warps together fill less. Of two kernels the one with the
//   longer interval issues R / d instructions of a warp in a round, not one, and stalls that much more
//   rarely:
//       R = w_1 + w_2 min(1, R / d_2), at least d_1      for d_1 <= d_2 and w_k ready warps
// - `pipes`, c: the mean cycles that an instruction takes of each pipe behind the scheduler (of the
//   scheduler's part, if schedulers share the pipe). The scheduler is a pipe with c = 1. The round is as long
//   as the busiest pipe needs, with w_k c_k in place of w_k.
// - `latency`: the kernel's own in place of L_0, since caches answer sooner, and a warp has several accesses
//   under way.
// - `requests`: the requests of an access that reach memory, in place of q of the two kinds.
//
// Instructions are warp instructions. Latency and bandwidth must be above 0. R_m is limited to 0.9999, which
// keeps the chain in one piece. Time grows with the cube of the states: 25 states take some 3 us, 81 some 40
// us (model_tests '[cost]' prints it).
//
//     const Memory memory{.latency = 600, .requests_per_cycle = 0.14};
//     issued(memory, {.count = 4, .warps = 2, .memory_ratio = 0.02})[0]     // instructions a cycle, alone
//     issued(memory, {4, 2, 0.02}, {4, 2, 0.1})                            // each one's, side by side
#pragma once

#include <array>

namespace smt::profiler::models {

// Pipes behind a warp scheduler. The caller chooses them, the same ones for all kernels.
inline constexpr int kPipes = 8;
using PipeCycles = std::array<double, kPipes>;

struct Memory {
    double latency = 0;             // L_0 + b_0: cycles of an access without load
    double requests_per_cycle = 0;  // B: the rate that memory serves to this multiprocessor
    double contention = 1;          // a_0
    double coalesced_requests = 1;  // q: of a warp's coalesced access
    double uncoalesced_requests = 32;
};

// The part of a kernel that is resident on the multiprocessor.
struct Units {
    int count = 0;
    double warps = 1;              // of each unit
    double memory_ratio = 0;       // R_m: memory instructions among all
    double uncoalesced_ratio = 0;  // uncoalesced among the memory instructions
    double interval = 1;           // d: cycles between two instructions of a warp, 1 or more
    double latency = 0;            // cycles; 0: the memory's
    double requests = -1;          // of an access; below 0: those of its kind
    PipeCycles pipes{};            // c, of an instruction
};

// Instructions a cycle of each kernel. If `second` has no unit, of `first` alone.
std::array<double, 2> issued(const Memory& memory, const Units& first, const Units& second = {});

// The number of states of the chain, which determines its cost.
int states_of(const Units& kernel);

}  // namespace smt::profiler::models
