// Whether the SMs that an urgent kernel leaves are worth a table to who makes way for it, or it rather waits: hpf.cpp says why.
//
// Once only: who makes way again in the same launch, or in the next, is given its table. A kernel that is not over when it should be
// is not waited for any more, nor are its stream's later ones; time in which it does not run, or the other has not stopped yet, does not count.
#pragma once

#include <optional>
#include <utility>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/policies/lookup.h"
#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

class ShortJobBypass {
public:
    // `soon`: what takes no longer is over soon. Zero: nothing is.
    explicit ShortJobBypass(Duration short_job) : short_(short_job) {}

    // `other` is next in the order, and of a lower priority; `left_ns` is what is left of `urgent`.
    bool is_waited_for(const Kernel& urgent, double left_ns, const Kernel& other, TimePoint now, Decision& decision) {
        if (short_ == Duration::zero() || slow_.contains(urgent.id)) return false;
        const Launch launch{urgent.id, urgent.launch};
        if (std::exchange(launch_, launch) != launch) {
            const bool again = made_way_.contains({other.id, other.launch}) || made_way_.contains({other.id, other.launch - 1});
            made_way_.note({other.id, other.launch});
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
        decision.ask_again(*until_ - now);
        return true;
    }

    // The others were given places beside the urgent one, whoever that was.
    void gave_places() { waits_ = false; }

private:
    using Launch = std::pair<uint64_t, uint64_t>;   // of a stream
    Duration short_;
    Launch launch_{};           // the urgent one that was asked about last
    bool waits_ = false;        // the other, for it
    std::optional<TimePoint> until_;   // at the latest, once it counts
    Recent<uint64_t> slow_;     // streams that were waited for in vain
    Recent<Launch> made_way_;
};

}  // namespace smt::runtime::schedule
