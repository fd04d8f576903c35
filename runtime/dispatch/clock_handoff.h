// RAII notice to a device that keeps its own clock: while the object lives, this thread waits for work of
// other threads.
#pragma once

#include "runtime/device/call_clock.h"
#include "runtime/device/device.h"

namespace smt::runtime::dispatch {

class ClockHandoff {
public:
    explicit ClockHandoff(device::Device& device) : device_(device) { device_.waits_for_others(true); }
    ~ClockHandoff() { device_.waits_for_others(false); }
    ClockHandoff(const ClockHandoff&) = delete;
    ClockHandoff& operator=(const ClockHandoff&) = delete;

private:
    device::Device& device_;
    const device::InWait timed_;
};

}  // namespace smt::runtime::dispatch
