// The tenants that share the device: their coming and going, stream priorities, and which may be stopped for
// which.
#include <algorithm>

#include "runtime/dispatch/dispatcher.h"

namespace smt::runtime::dispatch {

void Dispatcher::enter(const std::shared_ptr<Tenant>& tenant) {
    const Wanted wanted(wanted_);
    const auto lock = spin_lock(mutex_);
    tenants_.push_back(tenant);
    note_company();
    weigh_tenants();
}

void Dispatcher::exit(const std::shared_ptr<Tenant>& tenant) {
    const Wanted wanted(wanted_);
    const auto lock = spin_lock(mutex_);
    std::erase(tenants_, tenant);
    note_company();
    weigh_tenants();
    decide();
    device_.disturb();
}

void Dispatcher::note_company() {
    ++companies_;
    alone_.store(tenants_.size() == 1 ? companies_ : 0);
}

int Dispatcher::within_range(int priority) const { return std::clamp(priority, greatest_, least_); }

int Dispatcher::stream_priority(const Tenant& tenant, int asked) const {
    const int level = tenant.priority > 0 ? 2 : tenant.priority == 0 ? 1 : 0;
    const int each = (least_ - greatest_ + 1) / 3;
    if (each == 0) return within_range(asked);
    return least_ - level * each - std::min(least_ - within_range(asked), each - 1);
}

// A tenant is preemptible if another tenant is present for which the policy would stop it, and a preemptor if
// the policy would stop another tenant for it.
void Dispatcher::weigh_tenants() {
    using Stops = schedule::Policy::Stops;
    const Stops stops = policy_->stops();
    for (const auto& tenant : tenants_) {
        const auto beside = [&](const auto& more_urgent) {
            return std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& other) {
                if (other == tenant || stops == Stops::kNone) return false;
                return stops == Stops::kAny || more_urgent(*other);
            });
        };
        const bool preemptible =
            tenant->tried() || beside([&](const Tenant& other) { return other.priority > tenant->priority; });
        const bool preemptor = beside([&](const Tenant& other) { return other.priority < tenant->priority; });
        const bool was_preemptible = tenant->preemptible.exchange(preemptible),
                   was_preemptor = tenant->preemptor.exchange(preemptor);
        if (preemptor && !was_preemptor) tenant->preemptor_since = now();
        if ((!preemptible || was_preemptible) && (!preemptor || was_preemptor)) continue;
        for (const Member& member : members_) {
            if (&member.stream->tenant() == tenant.get()) member.stream->mark_what_is_there();
        }
    }
}

}  // namespace smt::runtime::dispatch
