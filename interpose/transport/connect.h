// The steps between the states of the process (process/state.h).
//
// How a stub begins:
//   written, real:  if (!ready()) { if (native()) return real_driver()->NAME(...);
//                                   return not_ready(); }
//   remote, async:  if (!connected()) { CUresult status = connect();
//                                       if (native()) return real_driver()->NAME(...);
//                                       if (status != CUDA_SUCCESS) return status; }
// A written function that needs the server before there is a context calls connect() the same way. Callable
// before cuInit, without these checks: cuInit, cuDriverGetVersion, cuGetErrorName, cuGetErrorString,
// cuGetProcAddress (_v2), cuGetExportTable.
#pragma once

#include <cuda.h>

namespace smt::interpose {

// cuInit. Thread-safe; the work is done once.
CUresult initialise();
// With SMT_FALLBACK=native: chooses between the server and the real driver. For calls that come before cuInit
// and cannot be undone.
void settle_fallback();
// The line about a server that cannot be reached, once in a process.
void say_no_server(const char* why);
// Opens the session once, for the GPU `device` (a driver ordinal; the first call decides). Afterwards the
// state is kRemote, with SUCCESS or the error that every later call returns, or kNative with SUCCESS.
CUresult connect(CUdevice device = 0);

}  // namespace smt::interpose
