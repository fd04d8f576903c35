// Blocking driver waits that sleep while the cores are oversubscribed.
//
// In a context with CU_CTX_SCHED_YIELD the driver's waits poll and yield, which has the lowest latency while
// cores are idle. If cores are scarce (device/cores.h) the same calls of the guarded table query the driver
// every 50 us and sleep in between. When the work is complete they call the driver's wait, which writes
// device printf output.
#pragma once

#include "driver_api.gen.h"

namespace smt::runtime::device {

// To be called once in a process. `scarce`: whether cores are scarce.
void guard_waits(DriverApi& driver, bool (*scarce)());

}  // namespace smt::runtime::device
