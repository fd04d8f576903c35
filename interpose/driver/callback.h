// The callback thread, which runs the application's host functions. One per session, started with the first
// host function, all signals blocked. The server writes CallbackSlots into SessionHeader. The thread takes
// them in order, runs each, and stores its completion word, for which the GPU's stream waits.
#pragma once

#include <cuda.h>

namespace smt::interpose {

// Starts the thread if it does not run. Must precede any record that names a host function.
CUresult start_callback_thread();

}  // namespace smt::interpose
