// The simulated GPUs that this process sees. Real ones are the real driver's business.
#pragma once

#include <cuda.h>

namespace smt::interpose {

// At cuInit: what the environment says then counts from then on.
void look_at_simulated_gpus();

// How many the process sees; 0 before look_at_simulated_gpus(), and where it does not use simulated ones.
int simulated_gpus();
// The number on the machine of the one that is `device` here; -1: there is none.
int simulated_gpu(CUdevice device);

}  // namespace smt::interpose
