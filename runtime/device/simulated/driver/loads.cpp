// Loads of code that wait for all that the device has to do, as CUDA's driver makes them wait.
#include <algorithm>

#include "runtime/device/simulated/driver/engine.h"

namespace smt::runtime::device::simulated {

void Engine::begin_load(bool module) {
    if (!settings_.loads_wait) return;
    hosted::Lock lock(hosted::world());
    const uint64_t before = ++period_;
    if (module) await(lock, [this, before] { return oldest_period() >= before; });
}

// What waits for a word that others write does not count: CUDA's driver is asked to load while nothing does
// (device/cuda/context_wide.h).
uint64_t Engine::oldest_period() const {
    uint64_t oldest = period_;
    for (const StreamPointer& each : streams_) {
        if (each->queue.empty()) continue;
        const hosted::Node& front = *each->queue.front();
        if (each->under_way || !front.polled || front.ready())
            oldest = std::min(oldest, each->turns.front().period);
    }
    return oldest;
}

}  // namespace smt::runtime::device::simulated
