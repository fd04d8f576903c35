// What the environment says about the simulated device (runtime/settings/settings.def).
#pragma once

#include "runtime/device/simulated/driver/engine.h"

namespace smt::runtime::device::simulated {

struct Settings {
    Engine::Settings engine;
    uint64_t memory_bytes = 0;
    std::string streams;          // a folder; empty: none
    bool dispatch_clock = false;  // the dispatcher goes by the device's clock
    bool doors = false;           // kernels without a managed form get the door
};

// A value that makes no sense counts as its default.
Settings read_settings();

}  // namespace smt::runtime::device::simulated
