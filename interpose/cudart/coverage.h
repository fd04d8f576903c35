// Calls of what this runtime does not do: counted by function. The first call of each is told to
// libsmt.so, which passes it on to the server's journal (`smt log`), and to stderr if
// SMT_REPORT_UNSUPPORTED asks for it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace smt::cudart {

// `index` counts from 0 in kRuntimeCoverage. Returns cudaErrorNotSupported.
cudaError_t unsupported(uint32_t index);

}  // namespace smt::cudart
