// Which driver answers a query about a device in the application.
#pragma once

#include "driver_api.gen.h"

namespace smt::interpose {

// The real one; where the process sees several simulated GPUs one of ours, which tells them apart. Null, or
// an entry that is null: the session's server answers.
const DriverApi* query_driver();

// Whether a driver, ours or the real one, says so.
bool device_exists(CUdevice device);

}  // namespace smt::interpose
