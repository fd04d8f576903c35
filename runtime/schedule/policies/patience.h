// Who has waited too long, and whose turn it is for that: what keeps a policy's favourites from keeping
// everybody else waiting for ever. Kernels that are stopped wait; those that were told to run do not.
#pragma once

#include <algorithm>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/policies/knobs.h"

namespace smt::runtime::schedule {

class Turns {
public:
    explicit Turns(const Patience& patience) : patience_(patience) {}

    // The kernel whose turn it is, if any of `kernels` (pointers) is. A turn ends with its kernel, too; then,
    // or when it is over, it goes to whoever has waited longest, if that was too long.
    template <class Kernels>
    const Kernel* whose(const Kernels& kernels, TimePoint now) {
        const Kernel* holder = nullptr;
        const Kernel* longest = nullptr;
        for (const Kernel* each : kernels) {
            if (each->id == id_ && each->launch == launch_ && now < until_) holder = each;
            if (!longest || waited(*each, now) > waited(*longest, now)) longest = each;
        }
        if (holder) return holder;
        until_ = {};
        if (!longest || waited(*longest, now) < patience_.longest_wait) return nullptr;
        id_ = longest->id;
        launch_ = longest->launch;
        until_ = now + patience_.turn;
        return longest;
    }

    // When the answer may become another.
    template <class Kernels>
    void ask_again(Decision& decision, const Kernels& kernels, TimePoint now) const {
        if (now < until_) decision.ask_again(until_ - now);
        for (const Kernel* each : kernels) {
            const Duration rest = patience_.longest_wait - waited(*each, now);
            if (each->state == Kernel::State::kWaiting && rest > Duration::zero()) decision.ask_again(rest);
        }
    }

private:
    Patience patience_;
    uint64_t id_ = 0, launch_ = 0;
    TimePoint until_{};  // past: it is nobody's turn
};

}  // namespace smt::runtime::schedule
