// Fair: tenants take turns of a duration in proportion to their weights. FLEP (Wu and others), 5.2.2:
// weighted round robin, in which i runs for an epoch of T * W_i, with the smallest T such that
//
//     sum(O_i) / (T * sum(W_i)) <= max_overhead        so        T = sum(O_i) / (max_overhead * sum(W_i))
//
// O_i is the cost of stopping i and of starting the next one's blocks (knobs.h). The sums cover the tenants
// with work. T is constant for a round, or until the number of tenants with work changes: the cost of stops
// varies, and each of two tenants would always see it at the same time.
//
//     O: 100 us each, W: 2 and 1, max_overhead 10 %:   T = 667 us; turns of 1333 and 667 us
//
// The paper's i is a kernel. Here it is a tenant, and all its kernels share a turn; else a program with more
// streams would get more of the GPU. Its O is the largest of its kernels', which stop together.
//
// A turn need not be in one piece. When its tenant becomes idle the next one in the ring has its turn, and
// what is left of the first one's is used later in the round. So programs that launch, wait and launch again
// fill each other's gaps, and no stop is needed for it. A round is over when no tenant with a turn left has
// work, or has been idle for less than the idle grace period (idle_grace.h): those whose turns are used up
// wait until then, or a program with gaps would get less than its share. A tenant that is idle when its turn
// would begin is skipped, and counts for T as long.
//
// A long block may run on after its turn. That time is taken off the tenant's next turn, and not off the turn
// that it ran into, for as long as that one lasts. The paper charges no tenant for it; with long blocks,
// weights then have little effect. No turn is shorter than the longest stop plus `shortest`, or a small share
// would end before the others have stopped. A tenant alone runs without turns. Crowds of short kernels run at
// the same time, as under share (docs/policies.md).
//
// Without a profile, O is by estimate.h. Unmanaged work is not stopped, and runs in others' turns too.
//
// No tenant starves: a round is finite and includes all tenants with work.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/lookup.h"
#include "runtime/schedule/policies/idle_grace.h"
#include "runtime/schedule/policies/policies.h"
#include "runtime/schedule/policies/short_kernels.h"

namespace smt::runtime::schedule {

namespace {

constexpr int kLeastPart = 8;  // of a turn, that a tenant keeps whatever its debt

struct Share {
    std::string tenant;
    double weight = 1;
    double preemption_ns = 0;  // O
    bool has_work = false;
    bool runs = false;                   // or is stopping
    bool is_short = false;               // all its kernels are, now or when it last had some
    bool runs_on = false;                // beyond its turn
    std::optional<TimePoint> idle = {};  // start of the idle time
    bool begun = false;                  // its turn, in this round
    Duration left{};                     // of that turn; below 0: it ran on for so long
    Duration owed{};                     // for having run on, beyond what this turn could pay
};

class Fair final : public Policy {
public:
    explicit Fair(const FairKnobs& knobs)
        : Policy({"fair", Stops::kAny}),
          knobs_(knobs),
          idle_grace_(knobs.idle_grace),
          for_crowds_(make_share()) {}
    bool leaves_alone() const override { return true; }
    bool lets_begin(std::string_view tenant, int priority) const override {
        return crowded_ && for_crowds_->lets_begin(tenant, priority);
    }

    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        charge(now);
        note_work(snapshot, now);
        dismiss(now);
        crowded_ = is_crowd(snapshot);
        if (crowded_) {
            turn_.clear();
            counts_ = false;
            return for_crowds_->want(snapshot, now, wanted);
        }
        take_turns(now);
        ask_again(now, wanted);
        for (const Kernel& kernel : snapshot.kernels) {
            if (!kernel.stoppable()) {
                wanted.resume(kernel, "runs as it is");
            } else if (kernel.tenant == turn_) {
                wanted.run(kernel, [&] { return fmt::format("the turn of {}", turn_); });
            } else {
                wanted.wait(kernel, [&] { return fmt::format("the turn of {}", turn_); });
            }
        }
    }

private:
    // The ring is in the order of arrival.
    void note_work(const Snapshot& snapshot, TimePoint now) {
        for (Share& share : ring_) share.has_work = share.runs = false;
        size_t near = 0;
        for (const Kernel& kernel : snapshot.kernels) {
            if (!kernel.stoppable()) continue;
            const size_t place =
                find_near(ring_, near, [&](const Share& each) { return each.tenant == kernel.tenant; });
            if (place == ring_.size()) ring_.push_back(Share{kernel.tenant});
            Share* const share = &ring_[place];
            if (!share->has_work) share->preemption_ns = 0, share->is_short = true;
            share->has_work = true;
            share->is_short &= seems_short(kernel, knobs_.short_kernel, now);
            share->runs |= kernel.state != Kernel::State::kWaiting;
            share->weight = kernel.weight > 0 ? kernel.weight : 1;
            share->preemption_ns = std::max(share->preemption_ns, preemption_ns(kernel));
        }
        for (Share& share : ring_) {
            share.runs_on &= share.runs;
            if (share.has_work)
                share.idle.reset(), idle_grace_.works(share.tenant, now);
            else
                idle_grace_.gone(share.tenant, now), share.idle = share.idle.value_or(now);
        }
    }

    bool is_crowd(const Snapshot& snapshot) const {
        return ring_.size() >= knobs_.crowd && std::ranges::all_of(ring_, &Share::is_short) &&
               std::ranges::all_of(snapshot.kernels, &Kernel::stoppable);
    }

    // Removes idle tenants after the idle grace period, with their debts, except the one that has the turn.
    void dismiss(TimePoint now) {
        std::erase_if(ring_, [&](const Share& share) {
            return share.tenant != turn_ && share.idle && now - *share.idle >= idle_grace_.of(share.tenant);
        });
    }

    // What has passed since the last call, to those that ran on beyond their turns, or else to the holder;
    // nothing where the holder was alone. decide() is called when work ends, not while it runs, so they ran
    // until now.
    void charge(TimePoint now) {
        const Duration passed = now - std::exchange(last_, now);
        if (!counts_) return;
        bool ran_on = false;
        for (Share& share : ring_) {
            if (!share.runs_on) continue;
            share.left -= passed;
            ran_on = true;
        }
        const auto holder = find(turn_);
        if (holder == ring_.end()) return;
        if (!ran_on) return void(holder->left -= passed);
        beside_ += passed;
        if (beside_ >= turn_of(*holder)) holder->left = {};
    }

    void take_turns(TimePoint now) {
        const auto holder = find(turn_);
        if (holder != ring_.end() && holder->has_work && holder->left > Duration::zero()) return;
        const auto by = [&](auto which) { return next(holder, which); };
        auto found = by(
            [](const Share& each) { return each.has_work && (!each.begun || each.left > Duration::zero()); });
        if (found == ring_.end())
            found = by([&](const Share& each) { return each.begun && returns(each, now); });
        if (found == ring_.end()) {
            for (Share& each : ring_) each.begun = false;
            epoch_ns_ = 0;
            found = by([](const Share& each) { return each.has_work; });
        }
        begin(found);
    }

    // It is idle, not for long, and has something left of its turn.
    bool returns(const Share& share, TimePoint now) const {
        return share.left > Duration::zero() && share.idle &&
               now - *share.idle < idle_grace_.of(share.tenant);
    }

    template <class Which>
    bool any_other(const Which& which) const {
        return std::ranges::any_of(
            ring_, [&](const Share& each) { return each.tenant != turn_ && std::invoke(which, each); });
    }

    // Behind the holder in the ring, the holder last; without one, from the beginning.
    template <class Which>
    std::vector<Share>::iterator next(std::vector<Share>::iterator holder, const Which& which) {
        const auto behind = holder == ring_.end() ? ring_.begin() : holder + 1;
        const auto found = std::find_if(behind, ring_.end(), which);
        if (found != ring_.end()) return found;
        const auto again = std::find_if(ring_.begin(), behind, which);
        return again == behind ? ring_.end() : again;
    }

    // A turn, or the rest of one.
    void begin(std::vector<Share>::iterator share) {
        if (share == ring_.end()) return turn_.clear();
        if (const auto holder = find(turn_); holder != share) {
            if (holder != ring_.end()) holder->runs_on = holder->runs;
            share->runs_on = false;
            turn_ = share->tenant;
            beside_ = {};
        }
        if (std::exchange(share->begun, true)) return;
        if (epoch_ns_ == 0 || std::exchange(sharing_, ring_.size()) != ring_.size()) epoch_ns_ = epoch_ns();
        sharing_ = ring_.size();
        beside_ = {};
        const Duration turn = turn_of(*share), debt = share->owed - std::min(share->left, Duration::zero()),
                       paid = std::min(debt, turn - turn / kLeastPart);
        share->owed = std::min(debt - paid, turn);
        share->left = turn - paid;
    }

    void ask_again(TimePoint now, Wanted& wanted) {
        const auto holder = find(turn_);
        counts_ = holder != ring_.end() && any_other([&](const Share& each) {
                      return each.has_work || (each.begun && returns(each, now));
                  });
        if (holder == ring_.end()) return;
        if (holder->idle) wanted.ask_again(*holder->idle + idle_grace_.of(turn_) - now);
        if (!any_other(&Share::has_work)) return;
        const bool beside = std::ranges::any_of(ring_, &Share::runs_on);
        wanted.ask_again(beside ? std::min(holder->left, turn_of(*holder) - beside_) : holder->left);
    }

    Duration turn_of(const Share& share) const { return nanoseconds(epoch_ns_ * share.weight); }

    double epoch_ns() const {  // T
        const double shortest = ns_of(knobs_.shortest), resume = ns_of(knobs_.resume);
        double overhead = 0, weights = 0, longest = 0, least = ring_.front().weight;
        for (const Share& share : ring_) {
            overhead += share.preemption_ns + resume;
            weights += share.weight;
            longest = std::max(longest, share.preemption_ns);
            least = std::min(least, share.weight);
        }
        return std::max({shortest, overhead / (knobs_.max_overhead * weights), (longest + shortest) / least});
    }

    std::vector<Share>::iterator find(const std::string& tenant) {
        return std::ranges::find_if(ring_, [&](const Share& share) { return share.tenant == tenant; });
    }

    FairKnobs knobs_;
    IdleGrace<std::string> idle_grace_;  // by tenant
    const std::unique_ptr<Policy> for_crowds_;
    bool crowded_ = false;  // at the last call
    std::vector<Share> ring_;
    std::string turn_;     // the tenant that has the turn; empty: none
    double epoch_ns_ = 0;  // T of this round,
    size_t sharing_ = 0;   // for so many tenants
    Duration beside_{};    // for how long others ran on beside the turn
    TimePoint last_{};     // call
    bool counts_ = false;  // the time since then: another tenant was there
};

}  // namespace

std::unique_ptr<Policy> make_fair(const FairKnobs& knobs) { return std::make_unique<Fair>(knobs); }

}  // namespace smt::runtime::schedule
