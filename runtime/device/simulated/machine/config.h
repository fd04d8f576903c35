// What the simulated machine is made of: an H200 with fewer multiprocessors.
//
// Modelled: residency of blocks (threads, warps, registers by sub-partition, shared memory, barriers,
// blocks); the block scheduler's queue; four warp schedulers a multiprocessor, one instruction a cycle
// each, the oldest ready warp first; a scoreboard; throughput and latency of each kind of unit;
// shared-memory bank conflicts; one queue of sectors for the memory of all multiprocessors, so that
// latency grows with load; two copy engines; one engine for fills and copies within the device.
//
// Not modelled: caches (every global access makes the whole way to memory; local memory always hits
// L1), instruction fetch, register banks and the compiler's reordering (PTX runs in its own order and
// an instruction of PTX counts as one), tensor cores, clusters, clock changes, the DRAM's pages,
// partition camping, traffic of copies in the kernels' memory queue. Host memory that a kernel reads
// costs what device memory costs.
//
// Sources. [ds] NVIDIA H200 data sheet and H100 white paper. [pg] CUDA C++ Programming Guide, technical
// specifications and arithmetic throughput of compute capability 9.0. [occ] cuda_occupancy.h of the
// toolkit. [hop] Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture"
// (arXiv 2402.13499). [h200] measured by us on an H200, docs/results.md#shape-bandwidth. [est] an estimate of
// ours; the order of magnitude is common knowledge.
#pragma once

#include <cstdint>

namespace smt::runtime::device::simulated {

using Cycle = uint64_t;
inline constexpr Cycle kNever = ~Cycle{0};

struct MachineConfig {
    int multiprocessors = 8;
    uint64_t step_limit = 0;  // warp-instructions of one launch after which it is ended; 0: none
};

// Limits of a multiprocessor [pg, occ].
inline constexpr uint32_t kWarpThreads = 32;
inline constexpr uint32_t kMostThreads = 2048;
inline constexpr uint32_t kMostWarps = 64;
inline constexpr uint32_t kMostBlocks = 32;
inline constexpr uint32_t kMostBarriers = 64;
inline constexpr uint32_t kMostBlockThreads = 1024;
inline constexpr uint32_t kPartitions = 4;  // sub-partitions, each with a warp scheduler
inline constexpr uint32_t kRegisters = 65536;
inline constexpr uint32_t kRegisterUnit = 256;  // a warp's registers come in these
inline constexpr uint32_t kMostThreadRegisters = 255;
inline constexpr uint32_t kSharedBytes = 228u << 10;
inline constexpr uint32_t kSharedUnit = 128;
inline constexpr uint32_t kReservedSharedBytes = 1u << 10;  // of every block, the system's
inline constexpr uint32_t kMostBlockSharedBytes = 227u << 10;
inline constexpr uint32_t kDefaultBlockSharedBytes = 48u << 10;  // without a function attribute

// The clock [ds: boost]: 1980 MHz, so 99 cycles are 50 ns.
inline constexpr uint64_t kCyclesPerSecond = 1'980'000'000;
inline constexpr uint64_t nanoseconds_of(Cycle cycles) { return cycles / 99 * 50 + cycles % 99 * 50 / 99; }
inline constexpr Cycle cycles_of(uint64_t nanoseconds) {
    return nanoseconds / 50 * 99 + (nanoseconds % 50 * 99 + 49) / 50;
}

inline constexpr int kWholeDevice = 132;  // multiprocessors of an H200 [ds]

// How long a unit of a sub-partition is taken by one warp, and when the result can be used [pg; hop; est].
// Results a cycle and multiprocessor [pg]: 128 float, 64 integer, 64 double, 16 special, 64 conversions.
struct UnitTimes {
    Cycle taken;
    Cycle latency;
};
inline constexpr UnitTimes kUnitTimes[] = {
    {2, 4},   // kInteger
    {1, 4},   // kFloat
    {2, 8},   // kDouble
    {8, 20},  // kSpecial
    {2, 6},   // kConvert
    {2, 8},   // kBranch: the next instruction of the warp waits so long
    {4, 0},   // kMemory: 8 load/store units a sub-partition; latency by address space, below
    {2, 0},   // kBarrier
    {1, 1},   // kNone
};
inline constexpr Cycle kBarrierRelease = 20;  // the last arrival to the first instruction behind it [est]

// Memory.
inline constexpr Cycle kSharedLatency = 29;    // [hop]
inline constexpr Cycle kLocalLatency = 41;     // an L1 hit [hop]
inline constexpr Cycle kConstantLatency = 30;  // [est]
inline constexpr Cycle kParameterLatency =
    6;  // from the constant bank, mostly folded into the instruction [est]
inline constexpr Cycle kGlobalLatency = 700;  // without load, past L2 [h200]
inline constexpr Cycle kAtomicExtra = 40;     // an atomic's work at L2 [est]
inline constexpr uint32_t kSectorBytes = 32;
inline constexpr uint64_t kMemoryBytesPerSecond = 4'600'000'000'000;  // of the whole device, reached [h200]
inline constexpr uint32_t kPortSectors = 2;   // a cycle and multiprocessor: 64 bytes between L2 and L1 [hop]
inline constexpr Cycle kDeepestQueue = 2048;  // a backlog beyond it stalls the load/store units [est]

// Launching [est, from the launch and copy times that the docs/results of this project show].
inline constexpr Cycle kLaunchLatency =
    cycles_of(1000);                       // from the head of its stream to the block scheduler
inline constexpr Cycle kBlockStart = 300;  // from a free place to the first instruction
inline constexpr Cycle kBlockSpacing = 2;  // between blocks given out
inline constexpr Cycle kGridDrain =
    cycles_of(500);  // from the last block's end to the stream's next piece of work

// Copies. The link to the host is an H200's whatever the number of multiprocessors; memory is not [ds, est].
inline constexpr uint64_t kLinkBytesPerSecond = 55'000'000'000;
inline constexpr Cycle kCopyLatency = cycles_of(1200);

}  // namespace smt::runtime::device::simulated
