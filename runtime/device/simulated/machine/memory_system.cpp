#include "runtime/device/simulated/machine/memory_system.h"

#include <algorithm>

namespace smt::runtime::device::simulated {

namespace {}  // namespace

// A device cut down to some multiprocessors has their share of the bandwidth, so that what saturates
// a multiprocessor is the same at every size.
MemorySystem::MemorySystem(int multiprocessors)
    : sector_ticks_(kTick * kSectorBytes * kCyclesPerSecond / (kMemoryBytesPerSecond / kWholeDevice) /
                    static_cast<uint64_t>(multiprocessors)),
      ports_(static_cast<size_t>(multiprocessors)) {}

MemorySystem::Trip MemorySystem::access(Cycle now, uint32_t multiprocessor, uint32_t sectors, bool atomic) {
    uint64_t& port = ports_[multiprocessor];
    port = std::max(port, now * kTick) + sectors * (kTick / kPortSectors);
    // An atomic reads and writes its sector.
    queue_ = std::max(queue_, now * kTick) + sectors * sector_ticks_ * (atomic ? 2 : 1);
    const Cycle served = (std::max(queue_, port) + kTick - 1) / kTick;
    return {served, served + kGlobalLatency + (atomic ? kAtomicExtra : 0)};
}

}  // namespace smt::runtime::device::simulated
