// Coverage: the calls of an application that smt does not support. The server counts them for each function,
// so that the reason for a program's other code path is on record.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace smt::interpose {

// Reports the call to the server, if there is a session, and returns CUDA_ERROR_NOT_SUPPORTED. `index` counts
// from 0 in kCoverage (coverage.gen.h). SMT_REPORT_UNSUPPORTED=1 prints the first call of each function on
// stderr.
CUresult unsupported(uint32_t index);
// The same where the server refused a form of a call (NOT_SUPPORTED); other results pass.
inline CUresult unless_refused(CUresult status, uint32_t index) {
    return status == CUDA_ERROR_NOT_SUPPORTED ? unsupported(index) : status;
}
// The same for a function of our CUDA runtime.
void report_unsupported_runtime(uint32_t index);

}  // namespace smt::interpose
