// Short-job bypass: whether a less urgent kernel gets a table for the SMs that an urgent kernel leaves free,
// or waits until the urgent kernel is over. hpf.cpp gives the reason.
//
// The bypass is used once: a kernel that makes way again in the same or the next launch gets a table. If the
// urgent kernel takes longer than twice `short_job`, the bypass ends, also for later kernels of its stream.
// Time during which the urgent kernel does not run, or the other one has not stopped yet, does not count. Not
// thread-safe.
#pragma once

#include <optional>
#include <utility>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/lookup.h"
#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

class ShortJobBypass {
public:
    // Kernels with at most this time left are short. Zero: none.
    explicit ShortJobBypass(Duration short_job) : short_(short_job) {}

    // Whether `other` waits for `urgent`. `other` is next in the order and has a lower priority; `left_ns` is
    // the time that `urgent` has left.
    bool is_waited_for(const Kernel& urgent, double left_ns, const Kernel& other, TimePoint now,
                       Wanted& wanted) {
        if (short_ == Duration::zero() || slow_.contains(urgent.id)) return false;
        if (std::exchange(launch_, urgent.name()) != urgent.name()) {
            const bool again =
                made_way_.contains(other.name()) || made_way_.contains({other.id, other.launch - 1});
            made_way_.note(other.name());
            until_.reset();
            waits_ = !again && other.state != Kernel::State::kWaiting && nanoseconds(left_ns) <= short_;
        }
        if (!waits_) return false;
        if (urgent.state != Kernel::State::kRunning || other.state != Kernel::State::kWaiting) {
            until_.reset();
            return true;
        }
        if (!until_) until_ = now + 2 * short_;
        if (now >= *until_) {
            slow_.note(urgent.id);
            return false;
        }
        wanted.ask_again(*until_ - now);
        return true;
    }

    // Other kernels have got a place beside any urgent kernel, so none waits any more.
    void gave_places() { waits_ = false; }

private:
    Duration short_;
    LaunchName launch_{};             // the last urgent one
    bool waits_ = false;              // `other` waits for it
    std::optional<TimePoint> until_;  // the latest end, once time counts
    Recent<uint64_t> slow_;           // streams with kernels that took too long
    Recent<LaunchName> made_way_;
};

}  // namespace smt::runtime::schedule
