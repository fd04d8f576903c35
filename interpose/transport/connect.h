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

#include "interpose/process/session.h"

namespace smt::interpose {

// cuInit. Thread-safe; the work is done once.
CUresult initialise();
// With SMT_FALLBACK=native: chooses between the server and the real driver. For calls that come before cuInit
// and cannot be undone.
void settle_fallback();
// The line about a server that cannot be reached, once in a process.
void say_no_server(const char* why);
// Opens the session with the server of the GPU `device` (a driver ordinal), once. Afterwards the state is
// kRemote, with SUCCESS or the error that every later call for this device returns, or kNative with SUCCESS.
// `session`: null, or where to put the session.
CUresult connect(CUdevice device, Session** session = nullptr);
// For a call that names no device: SUCCESS or the error of the thread's session. Opens one for GPU 0 if the
// process has none.
CUresult connect();

}  // namespace smt::interpose
