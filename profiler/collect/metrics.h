// The counters that are asked for, and what the models make of them.
//
// - Instructions are executed ones, of warps. Memory instructions are loads, stores, reductions and atomics
// that name global
//   memory (Kernelet, 4.4: R_m).
// - Uncoalesced: the model knows two kinds of accesses, of one request and of 32 (markov.h), and hardware
// counts
//   only sectors (32 bytes) of all of them. A coalesced access of 4 bytes a thread touches 4 sectors, an
//   uncoalesced one 32. So the share u is that which gives the sectors that were counted:
//       sectors = requests * (4 (1 - u) + 32 u)
//   within 0 and 1. Wider elements touch more sectors and count as a little uncoalesced; they do cost more
//   requests.
// - A request of DRAM is a sector; Peak_MPC is in sectors as well.
// - Time times frequency is what the multiprocessors' own clock counted, so the ratios hold at any clock:
//   `hertz` is that of the time of counting.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "profiler/models/utilization.h"

namespace smt::profiler::collect {

enum Metric : size_t {
    kTime,    // ns
    kCycles,  // of the multiprocessors' clock
    kExecuted,
    kIssued,
    kGlobalLoads,  // instructions
    kGlobalStores,
    kGlobalReductions,
    kGlobalAtomics,
    kLoadRequests,  // at L1, and the sectors that they touch
    kLoadSectors,
    kStoreRequests,
    kStoreSectors,
    kDramReads,  // sectors
    kDramWrites,
    kL2Sectors,
    kIssueSlots,      // % of the schedulers' cycles while they had warps
    kOccupancy,       // % of the warps that an SM has places for, while it had any
    kWaitsForMemory,  // warps that stood so, for each instruction issued
    kWaitsAtBarriers,
    kWaitsForPipes,
    kWaitsForIssue,  // ready, and another was issued
    kWaitsForQueue,  // of the accesses to global and local memory, which is full
    kWaitsForMio,    // of the accesses to shared memory, special functions and the like, which is full
    kActiveCycles,   // of a multiprocessor that had warps, mean
    kPipeAlu,        // %, of the cycles in which a multiprocessor had warps: how busy each pipe was
    kPipeFma,
    kPipeSpecial,
    kPipeDouble,
    kPipeLoadStore,
    kPipeData,  // of L1 and shared memory; % of all cycles
    kMetrics
};

// CUPTI's names, in that order. ncu's are the same.
extern const std::array<const char*, kMetrics> kMetricNames;

using Sample = std::array<double, kMetrics>;

// Of `blocks` blocks.
models::Counters counters_of(const Sample& sample, int64_t blocks);

// By name, for Profile::coefficients: "counted.hertz", "counted.issue_slot_utilization" (0 to 1),
// "counted.occupancy" (0 to 1), "counted.l2_bytes_per_block", "counted.dram_bytes_per_block",
// "counted.issued_per_executed", "counted.ipc" (of the whole device, in its cycles), "counted.waits.memory",
// ".barrier", ".pipe",
// ".issue", ".queue", ".mio", "counted.pipes.alu", ".fma", ".special", ".double", ".load_store", ".data" (0
// to 1, while there were warps), "counted.l1_bytes_per_block", "counted.active" (0 to 1: of the cycles those
// in which a multiprocessor had warps). The caller adds "counted.ctas_per_sm": how many fitted.
std::map<std::string, double> facts_of(const Sample& sample, int64_t blocks);

}  // namespace smt::profiler::collect
