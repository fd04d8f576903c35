// The policy in force: it is asked with a snapshot, runs its studies, is timed, and recorded.
//
// Not thread-safe, but for name(), short_stops(), explores() and least_saved(): the dispatcher's lock guards
// the rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/dispatch/durations.h"
#include "runtime/dispatch/tenants.h"
#include "runtime/schedule/policy.h"
#include "runtime/schedule/recorder.h"

namespace smt::runtime::dispatch {

class PolicyInForce {
public:
    using TimePoint = schedule::TimePoint;

    // `device`: of all snapshots.
    PolicyInForce(std::unique_ptr<schedule::Policy> policy, const schedule::Device& device);
    void adopt(std::unique_ptr<schedule::Policy> policy);       // recalls the last one of its name
    void record(std::unique_ptr<schedule::Recorder> recorder);  // every decision from now on

    const char* name() const { return name_.load(); }
    schedule::Duration least_saved() const { return least_saved_.load(std::memory_order_relaxed); }
    bool short_stops() const { return short_stops_.load(std::memory_order_relaxed); }
    bool explores() const { return explores_.load(std::memory_order_relaxed); }
    bool may_stop() const { return may_stop_.load(std::memory_order_relaxed); }  // any tenant
    schedule::Policy::Stops stops() const { return policy_->stops(); }
    // Streams are sampled: the policy goes by the progress of kernels.
    bool watches_pairs() const { return policy_->explores() == schedule::Policy::Explores::kPairs; }
    bool samples() const { return policy_->follows_launches(); }
    bool leaves_alone() const { return policy_->leaves_alone(); }  // after ask()
    bool lets_begin(const Tenant& tenant) const {                  // likewise
        return policy_->lets_begin(tenant.name, tenant.priority);
    }
    std::vector<int> parts() const { return policy_->parts(snapshot_.device); }

    // Of the last decision. Its kernels and urgent tenants are to be replaced before ask().
    schedule::Snapshot& snapshot() { return snapshot_; }
    // Nothing: a study is missing, and the decision is made when it has been learnt.
    std::optional<schedule::Decision> ask(TimePoint now);
    TimePoint ask_again() const { return ask_again_; }  // even without news; max(): never
    bool studying() const { return studying_; }         // a study is missing, or runs
    // Runs the missing study without the lock, so that launches run meanwhile. True: there was one, and the
    // policy is to be asked if studying() is false.
    bool study(std::unique_lock<std::mutex>& lock);
    // The thread that ran a study begins anew: a study that threw is over.
    void forget_study() { studying_ = study_ != nullptr; }

    void decided_since(TimePoint begin);  // by the host's clock: a whole decision is carried out
    std::string durations();              // of the policy's decisions so far, for the journal; "": none

private:
    std::unique_ptr<schedule::Policy> policy_;
    std::map<std::string_view, std::unique_ptr<schedule::Policy>> retired_;  // the last of each name
    uint64_t policies_ = 0;                                                  // number of policies so far
    std::atomic<bool> short_stops_{false}, may_stop_{false}, explores_{false};
    std::atomic<schedule::Duration> least_saved_{};
    std::atomic<const char*> name_{nullptr};        // policies' names are literals
    std::unique_ptr<schedule::Study> study_;        // a decision waits for it
    bool studying_ = false;                         // until it has been run and learnt
    Durations asking_, decisions_;                  // Policy::decide() alone, and whole decisions
    std::unique_ptr<schedule::Recorder> recorder_;  // null: decisions are not recorded
    schedule::Snapshot snapshot_;                   // kept for its memory
    TimePoint ask_again_ = TimePoint::max();
};

}  // namespace smt::runtime::dispatch
