// What the simulated device says about itself: an H200 with fewer multiprocessors.
#pragma once

#include <cuda.h>

namespace smt::runtime::device::simulated {

int device_attribute(CUdevice_attribute which, int multiprocessors);

}  // namespace smt::runtime::device::simulated
