// A policy decides which kernels run, on which multiprocessors, and why.
//
// want() says what is wanted of each kernel, and decide() gives what has changed since the last call. Both
// are pure functions of the snapshot, the time, and the state that the policy keeps from earlier snapshots:
// no clock, lock, input, output or CUDA. The dispatcher calls decide() when a kernel arrives, ends or has
// stopped, and after the delay that the last decision asked for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/schedule/aging.h"
#include "runtime/schedule/decision.h"
#include "runtime/schedule/snapshot.h"
#include "runtime/schedule/wanted.h"

namespace smt::runtime::schedule {

// A computation that takes too long to run while launches wait for a decision. It holds all its inputs, and
// no lock is held while it runs.
class Study {
public:
    virtual ~Study() = default;
    virtual void run() = 0;
};

class Policy {
public:
    virtual ~Policy() = default;
    // Which tenants the policy may ever stop or give a quota. Launches of other tenants need no bookkeeping.
    // kBestEffort: tenants without a target, for those that have one.
    enum class Stops { kNone, kLessUrgent, kBestEffort, kAny };
    // What it tries out of kernels that it does not know (policies/exploration.h). Their profiles are there
    // from the beginning then. kPairs: what two of them get done side by side is learnt, too.
    enum class Explores { kNothing, kKernels, kPairs };
    // What it is, whatever it sees.
    struct Traits {
        const char* name;
        Stops stops;
        // Whether stops should be short and launches should leave room for newcomers: launches then use the
        // saturating CTA count. Finding it costs each program some slow launches
        // (dispatch/saturating_ctas.h).
        bool short_stops = true;
        // A stop within a launch is of use if it saves so much time. Shorter launches with doors run to their
        // end: to ask at the door costs a launch of many short CTAs up to a third of its time.
        Duration least_saved{};
        // Of one that may stop any tenant: decide() is called for each launch, not only when kernels come, go
        // and stop.
        bool follows_launches = true;
        Explores explores = Explores::kNothing;
    };
    const Traits& traits() const { return traits_; }
    std::string_view name() const { return traits_.name; }

    // After decide(): whether the tenant of all the kernels, if there is but one, goes on as it is, whatever
    // it launches, until another tenant has work. Then its launches begin without a decision, and decide()
    // hears of them soon after (dispatch/solo.h).
    virtual bool leaves_alone() const { return false; }
    // After decide(): whether anything that this tenant launches until the next decision would run at once
    // and as it is, and would change nothing for others. Then it does, and decide() hears of it likewise.
    virtual bool lets_begin(std::string_view /*tenant*/, int /*priority*/) const { return false; }
    // The numbers of multiprocessors that confinements use, so that the sets can be created in advance.
    virtual std::vector<int> parts(const Device&) const { return {}; }
    // What decide() does with this policy; for another policy that leaves a decision to it.
    virtual void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) = 0;
    Decision decide(const Snapshot& snapshot, TimePoint now) {
        wanted_.begin(snapshot);
        want(snapshot, now, wanted_);
        return wanted_.end();
    }
    // A computation to run, and to pass to learn(), before the snapshot is decided on; null: none is missing.
    // Without it decide() does the computation itself: same decision, but it may take milliseconds.
    virtual std::unique_ptr<Study> study(const Snapshot&) { return nullptr; }
    virtual void learn(std::unique_ptr<Study>) {}  // a study() of this policy that has run
    // Before the first decide(): takes over what an earlier policy of this name has learnt of programs.
    virtual void recall(Policy& /*earlier*/) {}

protected:
    explicit Policy(const Traits& traits, const AgingKnobs& aging = {}) : traits_(traits), knobs_(aging) {}
    // The starvation guard. Each group of kernels has a turn of its own.
    Aging& aging(int group = 0) { return aging_.try_emplace(group, knobs_).first->second; }

private:
    const Traits traits_;
    Wanted wanted_;
    const AgingKnobs knobs_;
    std::map<int, Aging> aging_;
};
// Runs all missing studies, then decides. For callers without launches that wait.
Decision study_and_decide(Policy& policy, const Snapshot& snapshot, TimePoint now);

// make_policy() returns null for an unknown name.
std::unique_ptr<Policy> make_policy(std::string_view name);
std::vector<std::string> policy_names();
// Why a server cannot use that policy, with the names that it can use; empty if it can.
std::string policy_problem(std::string_view name);

}  // namespace smt::runtime::schedule
