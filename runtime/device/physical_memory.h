// Physical memory for tenants' ranges: made by the driver in this process, or by smt-keeper, whose memory
// outlives this process (runtime/keeper).
//
// Without a keeper, and after the keeper has ended, the driver makes it. What the keeper made stays valid
// when it ends, as long as it is mapped here.
//
// Some of what is given back stays here for the next one of its size (spare_chunks.h): to make and free it
// is most of what the start and the end of a small program cost.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/device/spare_chunks.h"
#include "runtime/keeper/client.h"

namespace smt::runtime::device {

class PhysicalMemory {
public:
    PhysicalMemory(const DriverApi& driver, const CUdevice& device) : driver_(driver), device_(device) {}
    PhysicalMemory(const PhysicalMemory&) = delete;
    PhysicalMemory& operator=(const PhysicalMemory&) = delete;

    // Servers of other GPUs may map it: from now on it is made such that it has descriptors. Before the first
    // session.
    void lend_to_other_gpus() { lends_ = true; }
    // What may be spare depends on it. Before the first session.
    void serves_device_of(uint64_t bytes) { spare_.bound(bytes); }
    // Before the first session. `pid`: the keeper, a child of this process.
    void keep_with(std::unique_ptr<keeper::Client> keeper, int pid);
    // A socket on which the keeper serves another process; -1: there is no keeper. The caller closes it.
    int socket_for_another() const;
    int keeper_pid() const { return pid_; }
    bool kept() const { return keeper_ && !lost_.load(); }

    using Made = MadeChunk;
    // Any thread. The handle is the caller's. Its contents are undefined, and may be another tenant's.
    CUresult make(uint64_t bytes, Made* made);
    // For a process that takes over: all that the keeper holds, with a handle each. On failure nothing is
    // found. The handles are the caller's.
    struct Found {
        Made made;
        uint64_t bytes = 0;
    };
    CUresult find_all(std::vector<Found>* found);
    // After the last handle and mapping are gone.
    void forget(uint64_t id);
    // After the last mapping is gone, of memory that no other process has or had. Takes the handle; 0: as
    // forget().
    void give_back(const Made& made, uint64_t bytes);
    // As cuMemGetInfo, but for what is spare: that is free. make() frees it where it needs the room; for
    // what else needs it there is trim().
    CUresult room(size_t* free, size_t* total) const;
    void trim();
    void trim_unused();  // called periodically
    // Called periodically. A line for the log, once, when the keeper has ended.
    std::string news();

private:
    CUresult make_new(uint64_t bytes, Made* made);
    CUresult import(const keeper::Client::Given& given, Made* made) const;  // closes the file
    void release(const std::vector<Made>& chunks);

    const DriverApi& driver_;
    const CUdevice& device_;
    std::unique_ptr<keeper::Client> keeper_;
    int pid_ = -1;
    bool lends_ = false;
    std::atomic<bool> lost_{false};
    bool told_ = false;               // news()'s thread only
    std::mutex trimming_;             // taken before mutex_
    std::atomic<uint64_t> trims_{0};  // that freed anything
    mutable std::mutex mutex_;
    SpareChunks spare_;  // guarded by mutex_
};

}  // namespace smt::runtime::device
