// The policy in force: it is asked with a snapshot, runs its studies, is timed, and recorded.
//
// Not thread-safe, but for traits(): the dispatcher's lock guards the rest.
#pragma once

#include <atomic>
#include <deque>
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

    const schedule::Policy::Traits& traits() const { return *traits_.load(std::memory_order_acquire); }
    // Streams are sampled: the policy goes by the progress of kernels.
    bool samples() const {
        return traits().stops == schedule::Policy::Stops::kAny && traits().follows_launches;
    }
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
    std::deque<schedule::Policy::Traits> adopted_;                           // of all policies so far
    std::atomic<const schedule::Policy::Traits*> traits_{nullptr};
    std::unique_ptr<schedule::Study> study_;        // a decision waits for it
    bool studying_ = false;                         // until it has been run and learnt
    Durations asking_, decisions_;                  // Policy::decide() alone, and whole decisions
    std::unique_ptr<schedule::Recorder> recorder_;  // null: decisions are not recorded
    schedule::Snapshot snapshot_;                   // kept for its memory
    TimePoint ask_again_ = TimePoint::max();
};

}  // namespace smt::runtime::dispatch
