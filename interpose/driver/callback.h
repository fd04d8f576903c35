// The thread that runs the application's host functions: one for the process, started with the
// first of them, all signals blocked. The server puts CallbackSlots into SessionHeader; the thread
// takes them in order, runs each, and stores its completion word, for which the GPU's stream waits.
#pragma once

#include <cuda.h>

namespace smt::interpose {

// Makes sure it runs. To be called before anything is sent that names a host function.
CUresult start_callback_thread();

}  // namespace smt::interpose
