#include "runtime/dispatch/standstill.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/dispatch/others_turn.h"

namespace smt::runtime::dispatch {

void Dispatcher::begin_standstill(const Tenant& tenant) {
    if (!device_.properties().loads_wait) return;
    std::unique_lock<std::mutex> lock;
    {
        const Wanted wanted(wanted_);
        lock = lock_soon(mutex_);
    }
    standstills_.push_back({&tenant, now() + Standstill::kLongest});
    for (Member& member : members_) {
        schedule::Kernel kernel;
        if (!stands_still(member)) continue;
        if (member.stream->describe(&kernel) && kernel.state == schedule::Kernel::State::kRunning)
            say(member.stream->tenant(), fmt::format("stands still: the driver loads or unloads code of {}", tenant.name));
        follow(member);
    }
    device_.disturb();
    if (all_told()) return;
    const OthersTurn others(device_);
    told_.wait(lock, [&] { return all_told() || !standstill_of(tenant); });
}

void Dispatcher::end_standstill(const Tenant& tenant) {
    if (!device_.properties().loads_wait) return;
    const Wanted wanted(wanted_);
    const auto lock = lock_soon(mutex_);
    const Still* const mine = standstill_of(tenant);
    if (!mine) return;   // it was over before
    standstills_.erase(standstills_.begin() + (mine - standstills_.data()));
    everybody_goes_on();
    device_.disturb();
}

// The dispatcher's thread, between looks.
void Dispatcher::look_at_standstills() {
    if (standstills_.empty()) return;
    if (std::erase_if(standstills_, [&](const Still& each) { return now() >= each.until; })) everybody_goes_on();
    for (const Still& each : standstills_) device_.let_go(each.tenant->session);
    told_.notify_all();
}

const Dispatcher::Still* Dispatcher::standstill_of(const Tenant& tenant) const {
    const auto found = std::find_if(standstills_.begin(), standstills_.end(), [&](const Still& each) { return each.tenant == &tenant; });
    return found == standstills_.end() ? nullptr : &*found;
}

bool Dispatcher::stands_still(const Member& member) const {
    return !standstills_.empty() && !member.trial && member.stream->tenant().stoppable.load(std::memory_order_relaxed);
}

bool Dispatcher::all_told() const {
    return std::none_of(members_.begin(), members_.end(), [&](const Member& each) { return each.behind && stands_still(each); });
}

// Their launches were stopped, or came, meanwhile.
void Dispatcher::everybody_goes_on() {
    for (Member& member : members_) follow(member);
    decide();
}

}  // namespace smt::runtime::dispatch
