// Launches, for all of the runtime's launch functions.
#pragma once

#include "runtime/device/simulated/cudart/registry.h"
#include "runtime/device/simulated/cudart/runtime.h"

namespace smt::cudart {

cudaError_t launch(const RegisteredKernel& kernel, dim3 grid, dim3 block, void** arguments,
                   size_t shared_bytes, CUstream stream);

// The driver's form of a launch configuration; the attributes stay the caller's.
cudaError_t driver_config(const cudaLaunchConfig_t& config, CUstream default_stream, CUlaunchConfig& made);

}  // namespace smt::cudart
