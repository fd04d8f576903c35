// For calls of a tenant that the driver makes wait until everything enqueued on the device is over, and keeps all other calls out meanwhile: to load
// code and to unload it (device/cuda/context_wide.h).
//
// While one of these lives, whoever may be stopped stands still, as if told to wait: launches stop between two blocks, and what comes is held
// back. So the call waits for a block and not for the end of launches, and no launch gets in between two calls that belong together. Then
// everybody goes on as the policy says. This holds whosever call it is: a call of the least urgent tenant, too, would
// keep out the launches of the most urgent one. What is in flight and cannot be stopped is waited for, as without, and so is whoever keeps the driver's gate shut.
//
// Standstills of several threads and tenants are one. It lasts for kLongest at most, from when everybody has been told, whatever the calls do (some compile); then everybody
// goes on for as long before there is another. Streams that are tried out (trial.h) do not take part.
#pragma once

#include "runtime/dispatch/dispatcher.h"

namespace smt::runtime::dispatch {

class Standstill {
public:
    // Returns when everybody has been told, or too long has passed. Called with no lock of this folder.
    Standstill(Dispatcher& dispatcher, const Tenant& tenant) : dispatcher_(dispatcher), number_(dispatcher.begin_standstill(tenant)) {}
    ~Standstill() { dispatcher_.end_standstill(number_); }
    Standstill(const Standstill&) = delete;
    Standstill& operator=(const Standstill&) = delete;

private:
    Dispatcher& dispatcher_;
    const uint64_t number_;
};

}  // namespace smt::runtime::dispatch
