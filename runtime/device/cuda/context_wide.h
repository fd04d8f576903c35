// Driver calls that wait until the whole context is idle and keep every other thread's calls out
// meanwhile. On an H200: cuMemHostUnregister, cuMemFree, cuMemFreeHost, cuArrayDestroy; to load a module
// and to unload it (a library's is loaded by cuLibraryGetModule, or by the first look for a kernel); a
// larger stack, also that of a kernel that is launched for the first time.
//
// Others return at once, and yet nothing that is enqueued after them begins on any stream until everything
// enqueued before them has ended: a function that is loaded when it is first asked for (cuModuleGetFunction,
// cuKernelGetFunction; tests/gpu/probes/standstill.cpp).
//
// Made at the wrong moment such a call never returns, or nobody's work goes on: a stream of another tenant waits for a word, or a
// host function waits in the client, and the call that would end the wait is kept out. So they are made
// while no stream waits for a client's doing (stream_waits.h), and meanwhile no stream begins to. Otherwise the table's
//   cuMemHostUnregister                      answers NOT_READY: to be tried again
//   cuMemFree, cuArrayDestroy, cuModuleUnload and kin   are made later, with the next of these calls
//   cuModuleLoadDataEx, cuLibraryGetModule, cuModuleGetFunction, cuKernelGetFunction, cuCtxSetLimit,
//   cuGreenCtxCreate                         wait
// A call that waits stands in `smt status` with whom it waits for. A session whose stream waits for longer than the patience
// while a call of another session is held up by it is ended: the values that its streams wait for are written then, as those of
// every session whose program is gone.
//
// Work that merely takes long still holds them up, and with them everybody's next calls.
#pragma once

#include <chrono>

#include "driver_api.gen.h"
#include "runtime/device/cuda/stream_waits.h"

namespace smt::runtime::device {

// Puts the gate into a driver's table: what calls through the table passes it. Once in a process.
void guard_context_wide_calls(DriverApi& driver, std::chrono::steady_clock::duration patience);
StreamWaits& stream_waits();   // of the guarded table

}  // namespace smt::runtime::device
