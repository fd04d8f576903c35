// Aging: detects kernels that have waited too long and grants them a turn. Prevents starvation by a policy's
// preferred kernels.
//
// A stopped kernel waits. Its waiting time counts from its last progress: since its blocks_done last changed,
// or since it last ran for kRan. A shorter run is no progress: a kernel that is resumed and stopped again a
// moment later has no time for a block. Not thread-safe.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/schedule/lookup.h"
#include "runtime/schedule/snapshot.h"
#include "runtime/schedule/wanted.h"

namespace smt::runtime::schedule {

// A kernel that waits longer than the starvation timeout goes first for a turn of at least `boost`, so that
// no kernel starves. None of the papers has this. A turn is many times the cost of a stop, and a tenth of the
// timeout: each waiting kernel takes at most a tenth of the time from the policy's own choice.
struct AgingKnobs {
    Duration starvation_timeout = std::chrono::milliseconds(100);
    Duration boost = std::chrono::milliseconds(10);
};

class Aging {
public:
    static constexpr Duration kRan = std::chrono::milliseconds(1);

    explicit Aging(const AgingKnobs& knobs) : knobs_(knobs) {}

    // The kernel that has the turn, out of `kernels` (a range of pointers); null: none. A turn ends after
    // `boost` or with its kernel. The next turn goes to the kernel with the longest waiting time, if that is
    // at least the starvation timeout.
    template <class Kernels>
    const Kernel* boosted(const Kernels& kernels, TimePoint now) {
        note(kernels, now);
        const Kernel* holder = nullptr;
        const Kernel* longest = nullptr;
        Duration wait{};
        for (size_t i = 0; i < kernels.size(); ++i) {
            const Kernel* const each = kernels[i];
            if (each->name() == turn_ && now < until_) holder = each;
            if (each->state != Kernel::State::kWaiting || (longest && now - seen_[i].got_done <= wait))
                continue;
            longest = each;
            wait = now - seen_[i].got_done;
        }
        if (holder) return holder;
        until_ = {};
        if (!longest || wait < knobs_.starvation_timeout) return nullptr;
        turn_ = longest->name();
        until_ = now + knobs_.boost;
        return longest;
    }

    // Requests a decision for when boosted() may change. `kernels` as in the last call of boosted().
    template <class Kernels>
    void ask_again(Wanted& wanted, const Kernels& kernels, TimePoint now) const {
        if (now < until_) wanted.ask_again(until_ - now);
        for (size_t i = 0; i < kernels.size(); ++i) {
            const Duration rest = knobs_.starvation_timeout - (now - seen_[i].got_done);
            if (kernels[i]->state == Kernel::State::kWaiting && rest > Duration::zero())
                wanted.ask_again(rest);
        }
    }

private:
    struct Seen {
        LaunchName name;
        uint64_t blocks_done;
        TimePoint got_done;
    };

    template <class Kernels>
    void note(const Kernels& kernels, TimePoint now) {
        std::swap(seen_, before_);
        seen_.clear();
        size_t next = 0;
        for (const Kernel* each : kernels) {
            const bool waits = each->state == Kernel::State::kWaiting;
            const size_t place =
                find_from(before_, next, [&](const Seen& one) { return one.name == each->name(); });
            const bool ran = !waits && now - each->since >= kRan;
            const bool nothing =
                place < before_.size() && before_[place].blocks_done == each->blocks_done && !ran;
            seen_.push_back({each->name(), each->blocks_done,
                             nothing ? before_[place].got_done
                             : waits ? std::min(each->since, now)
                                     : now});
        }
    }

    AgingKnobs knobs_;
    std::vector<Seen> seen_, before_;  // the kernels of the last call of boosted(), and of the one before
    LaunchName turn_{};
    TimePoint until_{};  // in the past: no kernel has the turn
};

}  // namespace smt::runtime::schedule
