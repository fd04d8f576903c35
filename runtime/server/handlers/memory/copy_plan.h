// A checked copy, and the simplest driver call that performs it. A client's request becomes a CopyPlan only
// if the session owns all memory that it touches.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "runtime/protocol/record.h"
#include "runtime/server/call.h"

namespace smt::runtime::server::handlers {

// One end of a copy in the driver's terms. Linear ends: the address of the first byte with offsets applied,
// pitch and height set.
struct PlannedEnd {
    CUmemorytype type = CU_MEMORYTYPE_DEVICE;
    uint64_t address = 0;  // or the array's handle
    uint64_t x = 0, y = 0, z = 0;
    uint64_t pitch = 0, height = 0;
    uint32_t lod = 0;
};

struct CopyPlan {
    PlannedEnd to, from;
    uint64_t width = 0, height = 0, depth = 0;

    bool linear() const {
        return height == 1 && depth == 1 && to.type != CU_MEMORYTYPE_ARRAY &&
               from.type != CU_MEMORYTYPE_ARRAY;
    }
    CUDA_MEMCPY3D shape() const;
    CUresult enqueue(const DriverApi& driver, CUstream stream) const;

private:
    CUresult enqueue_linear(const DriverApi& driver, CUstream stream) const;
    CUDA_MEMCPY2D flat_shape() const;
};

// A host end must lie in one of the session's host allocations. Arrays are added to call.uses: the plan must
// not move until Uses::begin(), and is valid after it.
CUresult plan_copy(Call& call, const protocol::Copy& copy, CopyPlan* plan);
// The host end is the staging slot at address `slot`, with packed rows.
CUresult plan_slot_copy(Call& call, const protocol::CopySlot& copy, uint64_t slot, CopyPlan* plan);

}  // namespace smt::runtime::server::handlers
