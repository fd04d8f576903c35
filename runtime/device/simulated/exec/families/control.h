// What the decoder adds by itself, and what frames need of handlers.
#pragma once

#include "runtime/device/simulated/exec/code.h"

namespace smt::runtime::device::simulated {

Handler leave_kernel();
Handler leave_function();

// Where the variables of the current frame begin in local memory.
uint64_t frame_variables(const Execution& x);

}  // namespace smt::runtime::device::simulated
