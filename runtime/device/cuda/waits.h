// The driver's own waits, in a context with CU_CTX_SCHED_YIELD, look and yield, which answers soonest while there are cores to spare. Where others want them
// (device/cores.h) the same calls of the guarded table ask the driver every 50 us and sleep between, and wait in it when it is over: then it writes out device printf.
#pragma once

#include "driver_api.gen.h"

namespace smt::runtime::device {

// Once in a process. `scarce`: whether others want the cores.
void guard_waits(DriverApi& driver, bool (*scarce)());

}  // namespace smt::runtime::device
