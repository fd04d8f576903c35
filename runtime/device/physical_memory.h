// Physical memory for tenants' ranges: made by the driver in this process, or by smt-keeper, whose memory
// outlives this process (runtime/keeper).
//
// Without a keeper, and after the keeper has ended, the driver makes it. What the keeper made stays valid
// when it ends, as long as it is mapped here.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "driver_api.gen.h"
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
    // Before the first session. `pid`: the keeper, a child of this process.
    void keep_with(std::unique_ptr<keeper::Client> keeper, int pid);
    // A socket on which the keeper serves another process; -1: there is no keeper. The caller closes it.
    int socket_for_another() const;
    int keeper_pid() const { return pid_; }
    bool kept() const { return keeper_ && !lost_.load(); }

    struct Made {
        CUmemGenericAllocationHandle handle = 0;  // the caller's
        uint64_t id = 0;                          // for forget(); 0: the driver made it
    };
    // Any thread. `address`: where it will be mapped; 0: the program maps it. Its contents are undefined.
    CUresult make(uint64_t bytes, uint64_t address, Made* made);
    // For a process that takes over: all that the keeper holds, with a handle each, to be mapped at
    // `address`. On failure nothing is found. The handles are the caller's.
    struct Found {
        Made made;
        uint64_t bytes = 0;
        uint64_t address = 0;
    };
    CUresult find_all(std::vector<Found>* found);
    // After the last handle and mapping are gone.
    void forget(uint64_t id);
    // Called periodically. A line for the log, once, when the keeper has ended.
    std::string news();

private:
    CUresult import(const keeper::Client::Given& given, Made* made) const;  // closes the file

    const DriverApi& driver_;
    const CUdevice& device_;
    std::unique_ptr<keeper::Client> keeper_;
    int pid_ = -1;
    bool lends_ = false;
    std::atomic<bool> lost_{false};
    bool told_ = false;  // news()'s thread only
};

}  // namespace smt::runtime::device
