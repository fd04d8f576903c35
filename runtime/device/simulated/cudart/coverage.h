// Coverage of the runtime: calls of unsupported functions are reported to libsmt.so and from there to the
// server, which counts them for `smt log`. SMT_REPORT_UNSUPPORTED prints the first call of each function on
// stderr.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace smt::cudart {

// `index` counts from 0 in kRuntimeCoverage. Returns cudaErrorNotSupported.
cudaError_t unsupported(uint32_t index);

}  // namespace smt::cudart
