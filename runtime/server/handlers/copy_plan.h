// A checked copy, and the cheapest driver call that does it. What a client sends becomes a
// CopyPlan only if all memory it touches is the session's own.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "runtime/protocol/record.h"
#include "runtime/server/call.h"

namespace smt::runtime::server::handlers {

// One end as the driver takes it. Linear ends: address of the first byte, offsets gone, pitch and
// height filled in.
struct PlannedEnd {
    CUmemorytype type = CU_MEMORYTYPE_DEVICE;
    uint64_t address = 0;  // or the array
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

// Host ends must lie in one of the session's host allocations. Arrays are named among what the call uses:
// the plan must stay where it is, and is one when the call has begun (Uses).
CUresult plan_copy(Call& call, const protocol::Copy& copy, CopyPlan* plan);
// The host end is a staging slot at `slot`, whose rows are packed.
CUresult plan_slot_copy(Call& call, const protocol::CopySlot& copy, uint64_t slot, CopyPlan* plan);

}  // namespace smt::runtime::server::handlers
