// For calls of a tenant that the driver makes wait until everything enqueued on the device is over, and keeps all other calls out meanwhile: to load
// code and to unload it (device/cuda/context_wide.h).
//
// While one of these lives, whoever may be stopped stands still, as if told to wait: launches stop between two blocks, and what comes is held
// back. So the call waits for a block and not for the end of launches, and none gets in between the several calls that a program's
// start consists of. Then everybody goes on as the policy says. This holds whosever call it is: a call of the least urgent tenant, too, would
// keep out the launches of the most urgent one. What is in flight and cannot be stopped is waited for, as without.
//
// It ends by itself after kLongest, whatever the calls do: some compile.
#pragma once

#include "runtime/dispatch/dispatcher.h"

namespace smt::runtime::dispatch {

class Standstill {
public:
    static constexpr std::chrono::milliseconds kLongest{20};

    // Returns when everybody has been told. Called with no lock of this folder.
    Standstill(Dispatcher& dispatcher, const Tenant& tenant) : dispatcher_(dispatcher), tenant_(tenant) { dispatcher_.begin_standstill(tenant_); }
    ~Standstill() { dispatcher_.end_standstill(tenant_); }
    Standstill(const Standstill&) = delete;
    Standstill& operator=(const Standstill&) = delete;

private:
    Dispatcher& dispatcher_;
    const Tenant& tenant_;
};

}  // namespace smt::runtime::dispatch
