// Quiesce windows, for calls that the driver blocks until the context is idle, keeping all other calls out
// meanwhile: loading code, unloading code, and freeing host memory (device/cuda/context_wide.h).
//
// While a Quiesce object lives, preemptible tenants are stopped as if the policy had ordered them to wait:
// launches stop between two blocks, and new launches are held back. So the call waits for a block and not for
// the end of launches. After the last call no launch is let in for kLingers, because a program's start makes
// several such calls in a row, or until the tenant that called launches. Then all streams continue as the
// policy says.
//
// The window is opened for calls of any tenant: a load by the least urgent tenant, too, would keep out
// launches of the most urgent one. A call that frees opens a window only where the policy may stop any tenant
// (quotas and further workers would wait for the driver, and launches for these), or, under priority, where a
// more urgent tenant is present. Work in flight that cannot be stopped is waited for, as without a window,
// and so is a call that already keeps other calls out of the driver.
//
// cuMemFree and unload block until the context is idle. If a preemptible tenant is running, such a call waits
// for the next quiesce window where none may begin yet or little is left of the current one (at most 40 ms
// per call, 200 ms per tenant; not on a device that keeps its own clock). Otherwise the call would wait for
// launches, and the dispatcher, which cannot send further workers meanwhile, for the call. Measured: up to
// 102 ms on an H200.
//
// Windows of several threads and tenants are one window. A window, or several in a row, lasts at most
// kLongest from when a stop was issued on all streams, whatever the calls do (some compile). Then there is
// none for as long. Streams under an experiment (experiment.h) do not take part.
#pragma once

#include "runtime/dispatch/dispatcher.h"

namespace smt::runtime::dispatch {

class Quiesce {
public:
    enum class For { kLoad, kFree };
    // Returns when a stop was issued on all streams, or after a timeout. The caller holds no lock of this
    // folder.
    Quiesce(Dispatcher& dispatcher, const Tenant& tenant, For what = For::kLoad)
        : dispatcher_(dispatcher), number_(dispatcher.begin_quiesce(tenant, what == For::kFree)) {}
    ~Quiesce() { dispatcher_.end_quiesce(number_); }
    Quiesce(const Quiesce&) = delete;
    Quiesce& operator=(const Quiesce&) = delete;

private:
    Dispatcher& dispatcher_;
    const uint64_t number_;
};

}  // namespace smt::runtime::dispatch
