// What an application asked for and smt does not do. Every unsupported entry point counts its
// calls, so that nobody has to guess why a program took another path.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace smt::interpose {

// `index` counts from 0 in kCoverage (coverage.gen.h). Counts the call, tells the server if there is
// a session, and returns CUDA_ERROR_NOT_SUPPORTED.
CUresult unsupported(uint32_t index);
uint64_t unsupported_calls(uint32_t index);
// The same for a function of our CUDA runtime, which counts its calls itself: tells the server.
void report_unsupported_runtime(uint32_t index);

}  // namespace smt::interpose
