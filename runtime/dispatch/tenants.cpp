#include "runtime/dispatch/tenants.h"

#include <algorithm>

namespace smt::runtime::dispatch {

namespace {

bool may_stop(Tenants::Stops stops, const Tenant& tenant, const Tenant& in_favour_of) {
    switch (stops) {
        case Tenants::Stops::kNone:
            return false;
        case Tenants::Stops::kLessUrgent:
            return in_favour_of.priority > tenant.priority;
        case Tenants::Stops::kBestEffort:
            return in_favour_of.target.any() && !tenant.target.any();
        case Tenants::Stops::kAny:
            break;
    }
    return true;
}

bool has_limit(const Tenants::Pointer& tenant) { return tenant->limited(); }

}  // namespace

void Tenants::enter(const Pointer& tenant) {
    std::erase(ending_, tenant);
    present_.push_back(tenant);
    note_company();
}

void Tenants::exit(const Pointer& tenant) {
    if (std::erase(present_, tenant) != 0 && has_limit(tenant)) ending_.push_back(tenant);
    note_company();
}

void Tenants::ended(const Pointer& tenant) {
    if (std::erase(ending_, tenant) != 0) note_company();
}

void Tenants::note_company() {
    ++companies_;
    alone_.store(present_.size() == 1 ? companies_ : 0);
    watched_.store(!ending_.empty() || std::ranges::any_of(present_, has_limit));
}

// A tenant is preemptible if another tenant is present for which the policy would stop it, and a preemptor if
// the policy would stop another tenant for it.
void Tenants::weigh(Stops stops, schedule::TimePoint now, const std::function<void(const Tenant&)>& begins) {
    for (const Pointer& tenant : present_) {
        const auto beside = [&](const auto& stops_for) {
            return std::ranges::any_of(
                present_, [&](const Pointer& other) { return other != tenant && stops_for(*other); });
        };
        const bool preemptible =
            tenant->tried() || beside([&](const Tenant& other) { return may_stop(stops, *tenant, other); });
        const bool preemptor = beside([&](const Tenant& other) { return may_stop(stops, other, *tenant); });
        const bool was_preemptible = tenant->preemptible.exchange(preemptible),
                   was_preemptor = tenant->preemptor.exchange(preemptor);
        if (preemptor && !was_preemptor) tenant->preemptor_since = now;
        if ((preemptible && !was_preemptible) || (preemptor && !was_preemptor)) begins(*tenant);
    }
}

void Tenants::list_services(std::vector<schedule::Service>& services) const {
    for (const Pointer& tenant : present_) {
        if (tenant->target.any() && tenant->preemptor.load())
            services.push_back({tenant->session, tenant->name, tenant->target, tenant->activity.launches(),
                                tenant->activity.over(), tenant->activity.take()});
    }
}

void Tenants::forget_attainments() {
    for (const Pointer& tenant : present_) tenant->attainment.state.store(Attainment::kNothing);
}

Tenant* Tenants::find(uint32_t session) const {
    const auto found =
        std::ranges::find_if(present_, [&](const Pointer& each) { return each->session == session; });
    return found == present_.end() ? nullptr : found->get();
}

void Tenants::list_urgent(std::vector<schedule::Urgent>& urgent) const {
    for (const Pointer& tenant : present_) {
        if (tenant->preemptor.load()) urgent.push_back({tenant->priority, tenant->preemptor_since});
    }
}

bool Tenants::any_above(int priority) const {
    return std::ranges::any_of(present_, [&](const Pointer& each) { return each->priority > priority; });
}

}  // namespace smt::runtime::dispatch
