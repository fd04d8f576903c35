// What a device reached through smt cannot do although the GPU can. Called with the status and the
// parameters of a device query that was answered; returns the status the application sees.
#pragma once

#include <cuda.h>

namespace smt::interpose::adjust {

CUresult cuDeviceGetAttribute(CUresult status, int* value, CUdevice_attribute attribute, CUdevice device);

}  // namespace smt::interpose::adjust
