// What the dispatcher does for a suspended tenant (runtime/server/suspension.h).
#include <algorithm>

#include "runtime/dispatch/dispatcher.h"

namespace smt::runtime::dispatch {

bool Dispatcher::suspended(const Member& member) { return member.stream->tenant().parking.closed(); }

// It leaves the tenants that policies know, so that none reserves a turn or SMs for it.
void Dispatcher::suspend(const std::shared_ptr<Tenant>& tenant) {
    const WantedMutex::Lock lock(mutex_);
    if (!tenant->parking.close()) return;
    tenants_.exit(tenant);
    end_unasked();
    weigh_tenants();
    for (Member& member : members_) {
        if (&member.stream->tenant() != tenant.get()) continue;
        follow(member);
        member.stream->look_up();
    }
    decide();
    device_.disturb();
}

void Dispatcher::resume(const std::shared_ptr<Tenant>& tenant) {
    const WantedMutex::Lock lock(mutex_);
    if (!tenant->parking.open()) return;
    tenants_.enter(tenant);
    end_unasked();
    weigh_tenants();
    for (Member& member : members_) {
        if (&member.stream->tenant() != tenant.get()) continue;
        member.stream->look_up();
        if (member.trial) continue;
        give(schedule::Assignment{member.stream->id(), schedule::Assignment::Action::kRun, "it is resumed"});
    }
    decide();
    device_.disturb();
}

bool Dispatcher::at_rest(const Tenant& tenant, uint32_t* runs) {
    const WantedMutex::Lock lock(mutex_);
    bool rests = true;
    for (Member& member : members_) {
        if (&member.stream->tenant() != &tenant) continue;
        member.stream->poll();
        follow(member);
        schedule::Kernel kernel;
        if (!member.stream->describe(&kernel) || kernel.state == schedule::Kernel::State::kWaiting) continue;
        if (rests) *runs = member.stream->first_under_way();
        rests = false;
    }
    return rests;
}

bool Dispatcher::holds_back(const Tenant& tenant) {
    const WantedMutex::Lock lock(mutex_);
    return std::ranges::any_of(members_, [&](const Member& member) {
        schedule::Kernel kernel;
        return &member.stream->tenant() == &tenant && member.stream->describe(&kernel);
    });
}

}  // namespace smt::runtime::dispatch
