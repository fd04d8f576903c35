// Device memory in pieces of one size. Any thread. A piece that is given back is kept for the next user:
// cuMemFree blocks until the context is idle and keeps all other calls out meanwhile, including the call that
// would end a wait.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "driver_api.gen.h"

namespace smt::runtime::dispatch {

class MemoryPool {
public:
    MemoryPool(const DriverApi& driver, uint64_t bytes) : driver_(driver), bytes_(bytes) {}
    ~MemoryPool() {  // precondition: no piece is in use
        for (const CUdeviceptr piece : free_) driver_.cuMemFree_v2(piece);
    }
    MemoryPool(const MemoryPool&) = delete;
    MemoryPool& operator=(const MemoryPool&) = delete;

    const DriverApi& driver() const { return driver_; }
    CUresult take(CUdeviceptr* piece) {  // contents are those of the last user
        {
            const std::lock_guard lock(mutex_);
            if (!free_.empty()) {
                *piece = free_.back();
                free_.pop_back();
                return CUDA_SUCCESS;
            }
        }
        return driver_.cuMemAlloc_v2(piece, bytes_);
    }
    void give(CUdeviceptr piece) {
        const std::lock_guard lock(mutex_);
        free_.push_back(piece);
    }

private:
    const DriverApi& driver_;
    const uint64_t bytes_;
    std::mutex mutex_;
    std::vector<CUdeviceptr> free_;
};

}  // namespace smt::runtime::dispatch
