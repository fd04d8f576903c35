// The server's end of a session's fence (rewriter/device/fence.h): which addresses its kernels may access,
// and the record of the first one that accessed another.
//
//   window := arena, device range       of which pinned blocks and mapped chunks are open, in whole granules
//
// open_to() comes after memory is mapped, close_to() before it is unmapped. A kernel that began before
// close_to() may still pass, so memory is unmapped only when idle() has said afterwards that none is under
// way; the owner of the memory keeps it until then.
//
// Any thread, but for open(). The lock is a leaf lock.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "rewriter/device/fence.h"
#include "runtime/device/device.h"

namespace smt::runtime::server {

class Fence {
public:
    // `idle`: nothing of the session is under way on the device.
    Fence(device::Device& device, std::function<bool()> idle) : device_(device), idle_(std::move(idle)) {}
    ~Fence();
    Fence(const Fence&) = delete;
    Fence& operator=(const Fence&) = delete;

    // Before the first kernel. `record`: host memory that the device reaches, as `told`, where the error is
    // written behind the record.
    CUresult open(uint64_t window, uint64_t bytes, FenceRecord* record, void* told);

    CUresult open_to(uint64_t base, uint64_t bytes);
    void close_to(uint64_t base, uint64_t bytes);
    bool idle() const { return idle_(); }

    // Writes a fenced module's constant, which lies at this address. `image`: for records.
    CUresult give_constant(CUdeviceptr constant, uint64_t image);

    // A copy of the record; none: there is no fault. The program can write there as well.
    std::optional<FenceRecord> fault() const;

private:
    CUresult write(CUdeviceptr to, const void* from, uint64_t bytes);
    CUresult mark(uint64_t base, uint64_t bytes, bool open);
    CUresult write_run();
    CUstream stream();

    device::Device& device_;
    const std::function<bool()> idle_;
    uint64_t window_ = 0, window_bytes_ = 0;
    const FenceRecord* record_ = nullptr;
    CUdeviceptr block_ = 0;
    uint64_t block_bytes_ = 0;

    std::mutex mutex_;
    std::map<uint64_t, uint64_t> runs_;  // base -> end; apart from each other
    uint64_t run_ = 0;                   // the one in the block
    CUstream stream_ = nullptr;
};

}  // namespace smt::runtime::server
