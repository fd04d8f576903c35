// The gate in front of context-wide driver calls. Such a call blocks until the whole context is idle, and
// blocks other threads' calls meanwhile. On an H200: cuMemHostUnregister, cuMemFree, cuMemFreeHost,
// cuArrayDestroy; loading and unloading a module (a library's module is loaded by cuLibraryGetModule or by
// the first lookup of a kernel); a larger stack, including that of a kernel's first launch.
//
// Other calls return at once, but work enqueued after them starts on no stream until all work enqueued before
// them has completed: the first lookup of a function, which loads it (cuModuleGetFunction,
// cuKernelGetFunction; tools/bench/probes/quiesce.cpp).
//
// At the wrong moment such a call deadlocks: a stream of another tenant waits for a word, or a host function
// waits in the client, and the call that would end the wait is blocked. So these calls are made only while no
// stream waits for a client's action (stream_waits.h), and no stream starts such a wait during the call. If a
// stream waits, the table's
//   cuMemHostUnregister                      returns NOT_READY; the caller tries again
//   cuMemFree, cuArrayDestroy, cuModuleUnload and related   are deferred to the next of these calls
//   cuModuleLoadDataEx, cuLibraryGetModule, cuModuleGetFunction, cuKernelGetFunction, cuCtxSetLimit,
//   cuGreenCtxCreate                         block
// `smt status` shows a blocked call and the wait that blocks it. A session is ended if its stream waits for
// longer than `patience` while a call of another session is blocked by it. The values that its streams wait
// for are then written, as for every session with a program that is gone.
//
// Long-running work without such waits still delays these calls, and with them all tenants' next calls. A
// kernel that does not end would delay them for ever, and no thread would get into the driver any more. So
// while a tenant has a limit for its kernels these calls are held back, as by a stream that waits, behind the
// launches that were there before them and all launches with a limit (launches_ahead.h), and when a kernel
// makes no progress (server/watchdog.h). Launches have the gate, too, meanwhile. Where they come all the time
// each waits for a millisecond at most for a call that did not get it.
#pragma once

#include <chrono>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/device/cuda/stream_waits.h"
#include "runtime/device/device.h"

namespace smt::runtime::device {

// Installs the gate in a driver's table: calls through the table pass it. To be called once in a process.
void guard_context_wide_calls(DriverApi& driver, std::chrono::steady_clock::duration patience);

// Device::hold_wide_calls().
void hold_context_wide_calls(bool hold);

// Device::watch_launches().
void watch_launches(bool watch);

// Device::watched_launches().
std::vector<WatchedLaunch> watched_launches();

// Device::stand_back().
bool stand_back_for_calls(std::chrono::steady_clock::duration longest);

// Device::make_deferred_calls().
void make_deferred_calls();

// Device::begin_quiet() and end_quiet(), for several of these calls in a row that have to be made at one such
// moment or not at all: while it lasts the gate is the calling thread's.
bool begin_quiet();
void end_quiet();

StreamWaits& stream_waits();  // of the guarded table

}  // namespace smt::runtime::device
