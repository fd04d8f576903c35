// Physical memory with several owners: a session's handles and mappings, and other sessions that map it.
//
// It counts against the limit of the session that made it until the last owner is gone, also if that session
// has ended. The driver keeps the memory as long as anything maps it, so it is given to no other session
// before that. Owners in servers of other GPUs (neighbours.h) count for the driver alone.
//
// Any thread. Owners hold a PhysicalPointer.
#pragma once

#include <cuda.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/device/device.h"
#include "runtime/server/memory/memory_account.h"

namespace smt::runtime::server {

class PhysicalAllocation {
public:
    // `kept`: its id if it is the keeper's; 0: it is not. `exportable`: the program asked for descriptors.
    PhysicalAllocation(device::Device& device, uint64_t bytes, Charge charge, uint64_t kept, bool exportable)
        : device_(device), bytes_(bytes), charge_(std::move(charge)), kept_(kept), exportable_(exportable) {}
    ~PhysicalAllocation() {
        if (const auto own = handle()) device_.driver().cuMemRelease(own);
        device_.physical_memory().forget(kept_);
    }
    PhysicalAllocation(const PhysicalAllocation&) = delete;
    PhysicalAllocation& operator=(const PhysicalAllocation&) = delete;

    uint64_t bytes() const { return bytes_; }
    uint64_t number() const {
        return number_;
    }  // compared where addresses overlap: by the process and a count
    bool exportable() const { return exportable_; }
    // A handle of its own, by which other sessions map it; 0: it has none yet.
    CUmemGenericAllocationHandle handle() const { return handle_.load(std::memory_order_acquire); }
    // A descriptor of the driver's for another GPU's server, which the caller closes. The memory has a
    // handle.
    CUresult export_to(int* file) {
        const DriverApi& driver = device_.driver();
        if (!driver.cuMemExportToShareableHandle || handle() == 0) return CUDA_ERROR_NOT_SUPPORTED;
        given_out_.store(true);
        return driver.cuMemExportToShareableHandle(file, handle(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                   0);
    }
    bool given_out() const { return given_out_.load(); }  // another server may have it mapped
    // Takes the handle over. To be called once.
    void own_handle(CUmemGenericAllocationHandle handle) { handle_.store(handle, std::memory_order_release); }

private:
    static uint64_t next_number() {
        static std::atomic<uint32_t> last{0};
        return static_cast<uint64_t>(getpid()) << 32 | ++last;
    }

    device::Device& device_;
    const uint64_t number_ = next_number();
    const uint64_t bytes_;
    const Charge charge_;
    const uint64_t kept_;
    const bool exportable_;
    std::atomic<CUmemGenericAllocationHandle> handle_{0};
    std::atomic<bool> given_out_{false};
};
using PhysicalPointer = std::shared_ptr<PhysicalAllocation>;

// A block of a session's memory that other sessions may open. The session holds it until it frees the block.
struct SharedBlock {
    PhysicalPointer memory;
    uint64_t offset = 0;  // of the block in that memory
    uint64_t bytes = 0;
    uint64_t base = 0;     // of that memory, in its session's addresses
    bool foreign = false;  // of a session of another GPU: those who have it open hold it
    uint64_t number = 0;   // `foreign`: PhysicalAllocation::number() there
};
using SharedBlockPointer = std::shared_ptr<const SharedBlock>;

}  // namespace smt::runtime::server
