// Calls of what this runtime does not do: libsmt.so passes them on to the server, which counts them for `smt log`.
// The first call of each function is told on stderr too, if SMT_REPORT_UNSUPPORTED asks for it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace smt::cudart {

// `index` counts from 0 in kRuntimeCoverage. Returns cudaErrorNotSupported.
cudaError_t unsupported(uint32_t index);

}  // namespace smt::cudart
