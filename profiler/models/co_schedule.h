// What it brings to run two kernels on the same multiprocessors, and with how many blocks of each: the
// co-scheduling profit and the balanced slice ratio of Kernelet (Zhong and He), sections 2.2 and 4.4, on the
// chain of markov.h.
//
//     CP = 1 - 1 / (cIPC_1 / IPC_1 + cIPC_2 / IPC_2)                     equation 1
//
// is the part of the time that is saved over running one after the other: 0.2 means four fifths of the time,
// below 0 that they are better apart. IPC_i is kernel i's alone, with all the blocks of it that fit; cIPC_i
// is what it has of the shared multiprocessor (equations 5 and 6).
//
//     dT = |I_1 P_1 / cIPC_1 - I_2 P_2 / cIPC_2|                          equation 8
//
// is how far apart two slices end, of P_i blocks of I_i instructions; the balanced ratio has the least.
//
// What the paper leaves open, and what is done here:
// - Several warp schedulers: one virtual multiprocessor with one scheduler and that scheduler's part of
//   memory, as in 4.4. The paper divides the blocks by the schedulers. Here the warps of each block are
//   divided: an SM distributes its warps among its schedulers (CUDA C++ Programming Guide, on compute
//   capability 7.x). The warps are as many either way, but few blocks divided by four leave one unit or less
//   of a kernel, and then the model sees a profit in two halves of one kernel side by side (0.17 for a block
//   each of 8 warps with R_m = 0.005; the chain of warps says 0.000, as this does).
// - Blocks are merged to larger units while the chain has more than `most_states` states. A kernel alone gets
//   units of the same size as beside the other, for the same reason.
// - dT is divided by the longer of the two times. As printed the smallest slices win, for being short.
//
// Beyond the paper: `rates`, what fewer blocks of a kernel get done alone, as measured. The chain says then only how much less that is
// beside the other, in units of the same size:
//
//     cIPC_i / IPC_i = rate_i(P_i) chain(P_1, P_2)_i / chain(P_i)
//
// Of 22 pairs in 176 combinations on an H200 (docs/results.md#profit-best-error) the profit of the one that is chosen so is off by 0.09, by R_m alone by 0.14.
//
// What blocks as units cost, with kQuickStates: for pairs of equally many blocks with R_m from 0.005 to 0.3, CP is off from that
// of the chain of warps by less than 0.004 on average with 4 warps a block, 0.01 with 8, 0.02 with 16, 0.04
// with 32: a large block that stalls as a whole leaves more idle than its warps would.
//
// Example: with 132 multiprocessors, blocks {3, 5} are slices of 396 and 660 blocks.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "profiler/models/markov.h"

namespace smt::profiler::models {

struct Multiprocessor {
    int warp_schedulers = 4;
    Memory memory;  // of the whole multiprocessor
};

struct KernelModel {
    int warps_per_block = 1;
    int most_blocks = 1;                // of it alone that fit on a multiprocessor
    double memory_ratio = 0;            // R_m
    double uncoalesced_ratio = 0;       // of the memory instructions
    double instructions_per_block = 0;  // I_K, of warps
    double interval = 1;                // these four as of markov.h's Units, where more than R_m is known (stalls.h)
    double latency = 0;
    double requests = -1;
    PipeCycles pipes{};
    std::vector<double> rates = {};     // alone with 1, 2, ... most_blocks of it, of that with all of them; empty: as the chain has it
};

using Blocks = std::array<int, 2>;  // of each of two kernels, on a multiprocessor

struct CoSchedule {
    Blocks blocks{};
    std::array<double, 2> alone{};     // IPC_K of a multiprocessor
    std::array<double, 2> together{};  // cIPC_K
    std::array<double, 2> cycles{};    // of P_i blocks: I_i P_i / cIPC_i
    double profit = 0;                 // CP
    double imbalance = 0;              // dT over the longer time: 0 to 1
};

inline constexpr int kQuickStates = 16;  // some three microseconds, five on slower processors

// Instructions a cycle of a multiprocessor that runs so many blocks of one kernel, at least one.
double alone(const Multiprocessor& multiprocessor, const KernelModel& kernel, int blocks);

double profit(const std::array<double, 2>& alone, const std::array<double, 2>& together);

// At least one block of each.
CoSchedule co_schedule(const Multiprocessor& multiprocessor, const KernelModel& first, const KernelModel& second,
                       Blocks blocks, int most_states = kQuickStates);

// The candidate with the least imbalance. Candidates are what fits together; they should be full, so that no
// further block of either would fit. Nothing: there is none with blocks of both.
std::optional<CoSchedule> balanced(const Multiprocessor& multiprocessor, const KernelModel& first,
                                   const KernelModel& second, std::span<const Blocks> candidates);
// The candidate with the largest profit, which is for who can run slices of another ratio than the blocks on a
// multiprocessor: the paper's slices are launches, and end with what is resident.
std::optional<CoSchedule> most_profitable(const Multiprocessor& multiprocessor, const KernelModel& first,
                                          const KernelModel& second, std::span<const Blocks> candidates);

}  // namespace smt::profiler::models
