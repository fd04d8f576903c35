// The real driver behind us, where this machine has one. It answers what needs no context (device
// queries, export tables, error texts) and is all there is in native fallback. We never create a
// context in it.
//
// Found by absolute path: SMT_REAL_DRIVER ("none": pretend there is none), then LD_LIBRARY_PATH,
// then the usual folders; a file that is libsmt.so itself is passed over.
#pragma once

#include <cuda.h>

#include <atomic>

#include "driver_api.gen.h"

namespace smt::interpose {

// SMT_DEVICE=sim: then there is no real driver for this process.
bool wants_simulated_device();

// nullptr: there is none. Entries the driver does not export are null. Loads it at the first call.
const DriverApi* real_driver();

// cuInit of the real driver, once, and its answer; NO_DEVICE without one.
CUresult initialise_real_driver();

}  // namespace smt::interpose
