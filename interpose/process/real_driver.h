// The real driver, where the machine has one. It answers calls that need no context (device queries, export
// tables, error texts) and every call in native fallback. libsmt.so never creates a context in it.
//
// It is loaded by absolute path: SMT_REAL_DRIVER ("none": no real driver), then LD_LIBRARY_PATH, then the
// usual folders. A file that is libsmt.so itself is skipped.
#pragma once

#include <cuda.h>

#include <atomic>

#include "driver_api.gen.h"

namespace smt::interpose {

// SMT_DEVICE=sim: this process uses no real driver.
bool wants_simulated_device();

// nullptr: there is none. Entries that the driver does not export are null. Loads the driver at the first
// call.
const DriverApi* real_driver();

// Calls the real driver's cuInit once and returns its result; NO_DEVICE without a real driver.
CUresult initialise_real_driver();

// The handle that the real driver would give the device's primary context. Does not create the context.
// nullptr: no real driver, or the driver does not report it.
CUcontext real_primary_context(CUdevice device);

}  // namespace smt::interpose
