// How many blocks of a kernel fit on a multiprocessor at once, by the rules of compute capability 9.0.
#pragma once

#include <cstdint>

#include "runtime/device/simulated/machine/config.h"

namespace smt::runtime::device::simulated {

// What a block occupies.
struct BlockNeeds {
    uint32_t threads = 0;
    uint32_t registers = 0;     // per thread
    uint32_t shared_bytes = 0;  // static and dynamic
    uint32_t barriers = 0;

    uint32_t warps() const { return (threads + kWarpThreads - 1) / kWarpThreads; }
    uint32_t warp_registers() const;    // as they are allocated
    uint32_t shared_allocated() const;  // with the system's part, rounded up
    bool possible() const;              // fits an empty multiprocessor
};

// 0: not one.
uint32_t blocks_per_multiprocessor(const BlockNeeds& needs);

// Dynamic shared memory that a block may take so that `blocks` of them stay resident.
uint32_t dynamic_shared_for(const BlockNeeds& needs_without, uint32_t blocks);

}  // namespace smt::runtime::device::simulated
