// The way of a warp's access to memory. Each multiprocessor has a port of its own to L2; behind the
// ports stands one queue for the memory of all, which serves sectors at the device's bandwidth. An
// access waits for both in turn, so latency grows when the device or the multiprocessor asks for more.
#pragma once

#include <vector>

#include "runtime/device/simulated/machine/config.h"

namespace smt::runtime::device::simulated {

class MemorySystem {
public:
    explicit MemorySystem(int multiprocessors);

    struct Trip {
        Cycle served;  // the last sector has been through the queue
        Cycle back;    // the data is in the registers
    };
    Trip access(Cycle now, uint32_t multiprocessor, uint32_t sectors, bool atomic);

private:
    static constexpr uint64_t kTick = 1024;  // of a cycle
    uint64_t sector_ticks_;                  // in the shared queue
    uint64_t queue_ = 0;                     // ticks at which it is empty
    std::vector<uint64_t> ports_;            // the same of each port
};

}  // namespace smt::runtime::device::simulated
