// The tenants that share the device: which are present, and which may be stopped for which.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/dispatch/activity.h"
#include "runtime/dispatch/gpu_time.h"
#include "runtime/dispatch/parking.h"
#include "runtime/dispatch/sm_sets.h"
#include "runtime/dispatch/trial.h"
#include "runtime/dispatch/unmanaged.h"
#include "runtime/schedule/policy.h"

namespace smt::runtime::dispatch {

// What the policy last said of a service's target, for status: written under the dispatcher's lock, read by
// any thread.
struct Attainment {
    static constexpr int kNothing = -1;
    std::atomic<int> state{kNothing};          // schedule::Attained::State
    std::atomic<int64_t> seen_p99_ns{0};       // 0: no request yet
    std::atomic<int> headroom_thousandths{0};  // of what is allowed; below 0: it is exceeded
    std::atomic<int> multiprocessors{0};       // that best-effort tenants have beside its requests
    bool told = false;                         // the journal says that it cannot be kept
};

// A session, as the dispatcher sees it.
struct Tenant {
    uint32_t session = 0;
    std::string name;
    std::atomic<int> priority{0};   // changed under the dispatcher's lock (set_terms()), as the next one
    std::atomic<double> weight{1};  // share under a policy that goes by shares; above 0
    Trial trial;
    bool tried() const { return trial.replaces_policy(); }
    schedule::Target target;            // of a service; nothing: a best-effort tenant
    schedule::Duration kernel_limit{};  // without progress (server/kernel_watch.h); zero: none
    bool limited() const { return kernel_limit != schedule::Duration::zero(); }
    Activity activity;  // of a service
    uint32_t journal_name = 0;
    // SMs for its streams; null: all. Set before its first stream is made.
    SmSetPointer places;
    std::atomic<bool> preemptible{false};   // its launches may be stopped, or limited to fewer CTAs
    std::atomic<bool> preemptor{false};     // launches of other tenants wait for the end of its own
    mutable std::atomic<bool> free{false};  // its launches begin without a decision (solo.h)
    schedule::TimePoint preemptor_since{};  // since when; guarded by the dispatcher's lock
    mutable schedule::Duration awaited{};   // sum of its waits for quiesce windows; likewise
    Parking parking;                        // Dispatcher::suspend()
    UnmanagedWindow window;
    Received received;
    Attainment attainment;
};

// Not thread-safe, but for alone(), watched() and company(): the dispatcher's lock guards the rest.
class Tenants {
public:
    using Stops = schedule::Policy::Stops;
    using Pointer = std::shared_ptr<Tenant>;

    void enter(const Pointer& tenant);
    void exit(const Pointer& tenant);
    // Of one that has exited: no kernel of it runs any more.
    void ended(const Pointer& tenant);
    // Not 0: exactly one tenant is present. The value changes whenever a tenant enters or exits.
    uint64_t alone() const { return alone_.load(std::memory_order_relaxed); }
    // A tenant with a limit for its kernels is present, or has exited and not ended.
    bool watched() const { return watched_.load(std::memory_order_relaxed); }
    Company& company() { return company_; }  // those with work on the GPU
    // Sets Tenant::preemptible and Tenant::preemptor for a policy that stops such tenants. `begins`: called
    // for each tenant that has become one of the two.
    void weigh(Stops stops, schedule::TimePoint now, const std::function<void(const Tenant&)>& begins);
    void forget_attainments();                                      // another policy begins
    void list_urgent(std::vector<schedule::Urgent>& urgent) const;  // adds the preemptors
    // Adds those beside best-effort ones, with the pauses since the last call.
    void list_services(std::vector<schedule::Service>& services) const;
    // The tenant of a session; null: it is not present.
    Tenant* find(uint32_t session) const;
    bool any_above(int priority) const;

private:
    void note_company();

    std::vector<Pointer> present_;
    std::vector<Pointer> ending_;  // with a limit
    uint64_t companies_ = 0;       // times that a tenant entered or exited
    std::atomic<uint64_t> alone_{0};
    std::atomic<bool> watched_{false};
    Company company_;
};

}  // namespace smt::runtime::dispatch
