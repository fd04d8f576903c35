// Says to a device that keeps a clock that this thread waits for what others do; until it goes.
#pragma once

#include "runtime/device/device.h"

namespace smt::runtime::dispatch {

class OthersTurn {
public:
    explicit OthersTurn(device::Device& device) : device_(device) { device_.waits_for_others(true); }
    ~OthersTurn() { device_.waits_for_others(false); }
    OthersTurn(const OthersTurn&) = delete;
    OthersTurn& operator=(const OthersTurn&) = delete;

private:
    device::Device& device_;
};

}  // namespace smt::runtime::dispatch
