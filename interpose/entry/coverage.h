// What an application asked for and smt does not do. The server counts the calls of each unsupported function, so that
// nobody has to guess why a program took another path.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace smt::interpose {

// `index` counts from 0 in kCoverage (coverage.gen.h). Tells the server, if there is a session, and returns
// CUDA_ERROR_NOT_SUPPORTED.
// SMT_REPORT_UNSUPPORTED=1 has the first call of each function named on stderr.
CUresult unsupported(uint32_t index);
// The same for a form of a call that the server refused; other answers pass.
inline CUresult unless_refused(CUresult status, uint32_t index) {
    return status == CUDA_ERROR_NOT_SUPPORTED ? unsupported(index) : status;
}
// The same for a function of our CUDA runtime.
void report_unsupported_runtime(uint32_t index);

}  // namespace smt::interpose
