// The gain from running two kernels on the same multiprocessors, and with how many blocks of each: the
// co-scheduling profit and the balanced slice ratio of Kernelet (Zhong and He), sections 2.2 and 4.4, on the
// chain of markov.h. Pure functions.
//
//     CP = 1 - 1 / (cIPC_1 / IPC_1 + cIPC_2 / IPC_2)                     equation 1
//
// is the part of the time that co-scheduling saves over running one kernel after the other. 0.2 means four
// fifths of the time; below 0 the kernels are faster apart. IPC_i is that of kernel i alone, with all blocks
// that fit. cIPC_i is its IPC on the shared multiprocessor (equations 5 and 6).
//
//     dT = |I_1 P_1 / cIPC_1 - I_2 P_2 / cIPC_2|                          equation 8
//
// is the time between the ends of two slices of P_i blocks with I_i instructions. The balanced ratio has the
// least dT.
//
// What the paper leaves open, and the choice made here:
// - Several warp schedulers: one virtual multiprocessor with one scheduler and that scheduler's part of
//   memory, as in 4.4. The paper divides the blocks by the schedulers. Here the warps of each block are
//   divided, since an SM distributes its warps among its schedulers (CUDA C++ Programming Guide, on compute
//   capability 7.x). The number of warps is the same, but few blocks divided by four leave one unit or less
//   of a kernel. The model then reports a profit for two halves of one kernel side by side (0.17 for a block
//   each of 8 warps with R_m = 0.005; the chain of warps and this model give 0.000).
// - Blocks are merged to larger units while the chain has more than `most_states` states. A kernel alone gets
//   units of the same size as beside the other, for the same reason.
// - dT is divided by the longer of the two times. As printed, the smallest slices would win because they are
//   short.
//
// Extension of the paper: `rates`, the measured throughput of a kernel alone with fewer blocks. The chain
// then gives only the factor by which the other kernel reduces it, in units of the same size:
//
//     cIPC_i / IPC_i = rate_i(P_i) chain(P_1, P_2)_i / chain(P_i)
//
// Measured: for 22 pairs in 176 combinations, the profit of the chosen combination is off by 0.09, and by R_m
// alone by 0.14 (docs/results.md#profit-best-error).
//
// The error of blocks as units, with kQuickStates: for pairs of equally many blocks with R_m from 0.005 to
// 0.3, the mean difference of CP from the chain of warps is below 0.004 with 4 warps a block, 0.01 with 8,
// 0.02 with 16, and 0.04 with 32. A large block that stalls as a whole leaves more idle cycles than its warps
// would.
//
// Example: with 132 multiprocessors, blocks {3, 5} correspond to slices of 396 and 660 blocks.
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
    int most_blocks = 1;                // that fit on a multiprocessor, alone
    double memory_ratio = 0;            // R_m
    double uncoalesced_ratio = 0;       // uncoalesced among the memory instructions
    double instructions_per_block = 0;  // I_K, in warp instructions
    double interval = 1;                // these four as in markov.h's Units, if known (stalls.h)
    double latency = 0;
    double requests = -1;
    PipeCycles pipes{};
    std::vector<double> rates = {};  // with 1 to most_blocks, alone, relative to all; empty: by the chain
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

inline constexpr int kQuickStates = 16;  // some 3 us, 5 us on slower processors

// Instructions a cycle of a multiprocessor that runs `blocks` (at least 1) blocks of one kernel.
double alone(const Multiprocessor& multiprocessor, const KernelModel& kernel, int blocks);

double profit(const std::array<double, 2>& alone, const std::array<double, 2>& together);

// `blocks`: at least one of each kernel.
CoSchedule co_schedule(const Multiprocessor& multiprocessor, const KernelModel& first,
                       const KernelModel& second, Blocks blocks, int most_states = kQuickStates);

// The candidate with the least imbalance. A candidate must fit on a multiprocessor and should be full, so
// that no further block of either kernel fits. Nothing: no candidate has blocks of both.
std::optional<CoSchedule> balanced(const Multiprocessor& multiprocessor, const KernelModel& first,
                                   const KernelModel& second, std::span<const Blocks> candidates);
// The candidate with the largest profit. For callers that can run slices of another ratio than the blocks on
// a multiprocessor: the paper's slices are launches, and end with what is resident.
std::optional<CoSchedule> most_profitable(const Multiprocessor& multiprocessor, const KernelModel& first,
                                          const KernelModel& second, std::span<const Blocks> candidates);

}  // namespace smt::profiler::models
