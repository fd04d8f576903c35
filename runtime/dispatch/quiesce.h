// For calls of a tenant that the driver makes wait until everything enqueued on the device is over, and keeps all other calls out meanwhile: to load
// code, to unload it, and to give back memory of the host (device/cuda/context_wide.h).
//
// While one of these lives, whoever may be stopped stands still, as if told to wait: launches stop between two blocks, and what comes is held
// back. So the call waits for a block and not for the end of launches, and for kLingers no launch gets in before the next such call, of which a program's start
// has several, or its first launch. Then everybody goes on as the policy says. This holds whosever call it is: a load of the least urgent tenant, too, would
// keep out the launches of the most urgent one. To free something is reason enough where the
// policy may stop anybody: quotas, and workers that are to follow, would wait for the driver, and launches for these. Under priority it is where somebody more urgent is there. What is in flight and cannot be stopped is waited for, as without, and so is whoever keeps the driver's gate shut.
// Who frees something while somebody works who would stand still waits for the next standstill where there is none, or little is left of one: else the call waits for their launches, and the
// dispatcher, which cannot follow them up meanwhile, for the call (not where the device keeps a clock). On an H200 a program's exit kept it out for 20 ms, once for 102.
// It waits 40 ms at most each time, and 0.2 s in all its life.
//
// Standstills of several threads and tenants are one. There is one, or several one after the other, for kLongest, from when everybody has been told, whatever the calls do (some
// compile); then for as long there is none. Streams that are tried out (experiment.h) do not take part.
#pragma once

#include "runtime/dispatch/dispatcher.h"

namespace smt::runtime::dispatch {

class Quiesce {
public:
    enum class For { kLoad, kFree };
    // Returns when everybody has been told, or too long has passed. Called with no lock of this folder.
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
