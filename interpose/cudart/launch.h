// A launch, however it was asked for.
#pragma once

#include "interpose/cudart/registry.h"
#include "interpose/cudart/runtime.h"

namespace smt::cudart {

cudaError_t launch(const RegisteredKernel& kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                   CUstream stream);

// A launch configuration in the driver's form; the attributes are the caller's own.
cudaError_t driver_config(const cudaLaunchConfig_t& config, CUstream default_stream, CUlaunchConfig& made);

}  // namespace smt::cudart
