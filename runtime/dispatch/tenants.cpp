#include "runtime/dispatch/tenants.h"

#include <algorithm>

namespace smt::runtime::dispatch {

void Tenants::enter(const Pointer& tenant) {
    present_.push_back(tenant);
    note_company();
}

void Tenants::exit(const Pointer& tenant) {
    std::erase(present_, tenant);
    note_company();
}

void Tenants::note_company() {
    ++companies_;
    alone_.store(present_.size() == 1 ? companies_ : 0);
}

// A tenant is preemptible if another tenant is present for which the policy would stop it, and a preemptor if
// the policy would stop another tenant for it.
void Tenants::weigh(Stops stops, schedule::TimePoint now, const std::function<void(const Tenant&)>& begins) {
    for (const Pointer& tenant : present_) {
        const auto beside = [&](const auto& more_urgent) {
            return std::any_of(present_.begin(), present_.end(), [&](const Pointer& other) {
                if (other == tenant || stops == Stops::kNone) return false;
                return stops == Stops::kAny || more_urgent(*other);
            });
        };
        const bool preemptible =
            tenant->tried() || beside([&](const Tenant& other) { return other.priority > tenant->priority; });
        const bool preemptor = beside([&](const Tenant& other) { return other.priority < tenant->priority; });
        const bool was_preemptible = tenant->preemptible.exchange(preemptible),
                   was_preemptor = tenant->preemptor.exchange(preemptor);
        if (preemptor && !was_preemptor) tenant->preemptor_since = now;
        if ((preemptible && !was_preemptible) || (preemptor && !was_preemptor)) begins(*tenant);
    }
}

void Tenants::list_urgent(std::vector<schedule::Urgent>& urgent) const {
    for (const Pointer& tenant : present_) {
        if (tenant->preemptor.load()) urgent.push_back({tenant->priority, tenant->preemptor_since});
    }
}

bool Tenants::any_above(int priority) const {
    return std::any_of(present_.begin(), present_.end(),
                       [&](const Pointer& each) { return each->priority > priority; });
}

}  // namespace smt::runtime::dispatch
