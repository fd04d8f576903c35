// The simulated device: the driver's functions over a machine made of software. See README.md.
#pragma once

#include "runtime/device/device.h"

namespace smt::runtime::device::simulated {

// Where its settings come from: runtime/settings/settings.def. One in a process: the driver's entry points
// have no argument that could tell two apart.
std::unique_ptr<Device> open(const std::string& key, std::string& error);

}  // namespace smt::runtime::device::simulated
