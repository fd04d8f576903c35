// What a policy said of each kernel, so that it says only what changes.
//
// What is stopping is left to stop; the policy is asked again when it has. A kernel in another state than the
// one that was asked for is named again.
#pragma once

#include <algorithm>
#include <utility>

#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

class Ledger {
public:
    // `reason` is a function: most of what is decided is what was said before.
    template <class Reason>
    void wait(Decision& decision, const Kernel& kernel, const Reason& reason) {
        forget(kernel.id);
        if (kernel.state == Kernel::State::kRunning)
            decision.assignments.push_back({kernel.id, Assignment::Action::kWait, reason(), {}, 0});
    }

    template <class Reason>
    void run(Decision& decision, const Kernel& kernel, const Quota& quota, uint64_t slice,
             const Reason& reason) {
        if (kernel.state == Kernel::State::kStopping) return;
        auto found =
            std::find_if(runs_.begin(), runs_.end(), [&](const Run& each) { return each.id == kernel.id; });
        if (found == runs_.end()) {
            runs_.push_back({kernel.id, quota, slice});
        } else {
            const bool same = found->quota == quota && found->slice == slice;
            if (same && kernel.state == Kernel::State::kRunning) return;
            *found = {kernel.id, quota, slice};
        }
        decision.assignments.push_back({kernel.id, Assignment::Action::kRun, reason(), quota, slice});
    }

    // Kernels that are gone: what comes back is told afresh.
    void keep_only(const Snapshot& snapshot) {
        std::erase_if(runs_, [&](const Run& run) {
            return std::none_of(snapshot.kernels.begin(), snapshot.kernels.end(),
                                [&](const Kernel& kernel) { return kernel.id == run.id; });
        });
    }

private:
    struct Run {
        uint64_t id;
        Quota quota;
        uint64_t slice;
    };
    void forget(uint64_t id) {
        std::erase_if(runs_, [&](const Run& run) { return run.id == id; });
    }
    std::vector<Run> runs_;
};

}  // namespace smt::runtime::schedule
