// Who has waited too long, and whose turn it is for that: what keeps a policy's favourites from keeping
// everybody else waiting for ever.
//
// A kernel that is stopped waits, and has waited since it last got anything done: since it had blocks done that it has now, or had run
// for kRan. Who is told to run when a favourite is gone and to wait when that is back a moment later had no time for a block.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/policies/knobs.h"
#include "runtime/schedule/policies/lookup.h"

namespace smt::runtime::schedule {

class Aging {
public:
    static constexpr Duration kRan = std::chrono::milliseconds(1);

    explicit Aging(const AgingKnobs& knobs) : knobs_(knobs) {}

    // The kernel whose turn it is, if any of `kernels` (pointers) is. A turn ends with its kernel, too; then,
    // or when it is over, it goes to whoever has waited longest, if that was too long.
    template <class Kernels>
    const Kernel* boosted(const Kernels& kernels, TimePoint now) {
        note(kernels, now);
        const Kernel* holder = nullptr;
        const Kernel* longest = nullptr;
        Duration wait{};
        for (size_t i = 0; i < kernels.size(); ++i) {
            const Kernel* const each = kernels[i];
            if (each->id == id_ && each->launch == launch_ && now < until_) holder = each;
            if (each->state != Kernel::State::kWaiting || (longest && now - seen_[i].got_done <= wait)) continue;
            longest = each;
            wait = now - seen_[i].got_done;
        }
        if (holder) return holder;
        until_ = {};
        if (!longest || wait < knobs_.starvation_timeout) return nullptr;
        id_ = longest->id;
        launch_ = longest->launch;
        until_ = now + knobs_.boost;
        return longest;
    }

    // When the answer may become another. Asked for the kernels of boosted().
    template <class Kernels>
    void ask_again(Decision& decision, const Kernels& kernels, TimePoint now) const {
        if (now < until_) decision.ask_again(until_ - now);
        for (size_t i = 0; i < kernels.size(); ++i) {
            const Duration rest = knobs_.starvation_timeout - (now - seen_[i].got_done);
            if (kernels[i]->state == Kernel::State::kWaiting && rest > Duration::zero()) decision.ask_again(rest);
        }
    }

private:
    struct Seen {
        uint64_t id, launch, blocks_done;
        TimePoint got_done;
    };

    template <class Kernels>
    void note(const Kernels& kernels, TimePoint now) {
        std::swap(seen_, before_);
        seen_.clear();
        size_t next = 0;
        for (const Kernel* each : kernels) {
            const bool waits = each->state == Kernel::State::kWaiting;
            const size_t place = find_from(before_, next, [&](const Seen& one) { return one.id == each->id && one.launch == each->launch; });
            const bool ran = !waits && now - each->since >= kRan;
            const bool nothing = place < before_.size() && before_[place].blocks_done == each->blocks_done && !ran;
            seen_.push_back({each->id, each->launch, each->blocks_done, nothing ? before_[place].got_done : waits ? std::min(each->since, now) : now});
        }
    }

    AgingKnobs knobs_;
    std::vector<Seen> seen_, before_;   // of boosted() kernels, the last ones and those before
    uint64_t id_ = 0, launch_ = 0;
    TimePoint until_{};  // past: it is nobody's turn
};

}  // namespace smt::runtime::schedule
