// How many instructions a cycle a multiprocessor with one warp scheduler issues while one or two kernels are
// resident on it: the Markov model of Kernelet (Zhong and He), section 4.4. It sees what two kernels do to
// each other: one issues while the other waits for memory, and both wait longer for a busy one.
//
// The multiprocessor holds units: warps, or thread blocks, which the paper takes to keep the chain small. A
// unit is ready, or idle: stalled by a memory access. Time goes in rounds, in which the scheduler serves each
// ready unit once; the state is how many units of each kernel are idle. From one round to the next
//
//     a ready unit stalls           with P_r->i = R_m
//     an idle one becomes ready     with P_i->r = R / L, at most 1
//
// each by itself, where R is the round's duration, one cycle for each warp of the ready units (W - i in the
// paper), and one if there are none; L is the latency of an access. Equation 2 lists the combinations that
// lead from one state to another; adding the units up one by one gives the same sum, and for two kernels,
// which are independent given the state, the product. The steady state pi (equation 3) weighs the rounds:
//
//     IPC_K = sum(pi * issued_K) / sum(pi * R)       equations 4 (one kernel), 5 and 6 (two)
//
// Uncoalesced accesses split idle in two, stalled on the one kind or the other; a kernel that has both kinds
// has (n + 1)(n + 2) / 2 states where another has n + 1.
//
// What the paper leaves open, and what is done here:
// - P_i->r is printed as (W - I) / L, which is 0 when all are idle, and nothing would ever run again. The
//   round lasts a cycle then, as the paper says below equation 3; so it is R / L.
// - L is printed as L_0 + B / (a_0 S_i) + b_0: falling with the requests under way, endless for none, and not
//   the linear model that the text announces. Here L = L_0 + (a_0 N + q - 1) / B, with b_0 counted into L_0:
//   N requests are under way in this state, of both kernels, and an access ends with the last of its own q.
//   With a_0 = 1 memory never serves more than B requests a cycle (Little's law), hence the default.
// - Equation 5's denominator is printed with (i, i); it is equation 6's.
// - A block as the unit: all its warps issue one instruction in a round, and stall together. So it counts for
//   its warps in R, in what is issued, and in N. With `warps` 1 everything is the paper's model of warps.
//
// Beyond the paper, for who has counted more of a kernel than R_m (stalls.h). With the defaults everything is as above:
// - `interval`, d: a ready warp does not issue in every cycle even if the scheduler is free, for it waits for its own last result, a unit or
//   a barrier: d cycles lie between two of its instructions. So a round lasts d cycles at least, where all ready warps together fill
//   less; of two kernels the one with the longer interval issues R / d instructions of a warp in a round, not one, and
//   stalls that much more rarely:
//       R = w_1 + w_2 min(1, R / d_2), at least d_1      for d_1 <= d_2 and w_k ready warps
// - `pipes`, c: an instruction takes so many cycles of each pipe behind the scheduler (of its part, where schedulers share one), on
//   average. The scheduler is a pipe with c = 1; the round is as long as the busiest needs, with w_k c_k in place of w_k.
// - `latency`: the kernel's own in place of L_0, since caches answer sooner, and a warp has several accesses under way.
// - `requests`: of each access, in place of q of the two kinds: what of it goes to memory at all.
//
// Instructions are those of warps. Latency and bandwidth are above 0; R_m is taken as 0.9999 at most, which
// keeps the chain in one piece. Time grows with the cube of the states: 25 take some 3 us, 81 some 40
// (model_tests '[cost]' prints it).
//
//     const Memory memory{.latency = 600, .requests_per_cycle = 0.14};
//     issued(memory, {.count = 4, .warps = 2, .memory_ratio = 0.02})[0]     // instructions a cycle, alone
//     issued(memory, {4, 2, 0.02}, {4, 2, 0.1})                            // each one's, side by side
#pragma once

#include <array>

namespace smt::profiler::models {

// Pipes behind a warp scheduler; which they are is whoever counts them's business, as long as it is the same for all kernels.
inline constexpr int kPipes = 8;
using PipeCycles = std::array<double, kPipes>;

struct Memory {
    double latency = 0;             // L_0 + b_0: cycles of an access when no other is under way
    double requests_per_cycle = 0;  // B: what memory serves to this multiprocessor
    double contention = 1;          // a_0
    double coalesced_requests = 1;  // q: of a warp's coalesced access
    double uncoalesced_requests = 32;
};

// What a kernel has on the multiprocessor.
struct Units {
    int count = 0;
    double warps = 1;              // of each unit
    double memory_ratio = 0;       // R_m: memory instructions among all
    double uncoalesced_ratio = 0;  // uncoalesced among the memory instructions
    double interval = 1;           // d: cycles from a warp's instruction to its next, 1 or more
    double latency = 0;            // cycles; 0: the memory's
    double requests = -1;          // of an access, below 0: of its kind
    PipeCycles pipes{};            // c, of an instruction
};

// Instructions a cycle of each kernel; of one kernel alone if the second has no unit.
std::array<double, 2> issued(const Memory& memory, const Units& first, const Units& second = {});

// States of the chain, by which its cost can be told.
int states_of(const Units& kernel);

}  // namespace smt::profiler::models
