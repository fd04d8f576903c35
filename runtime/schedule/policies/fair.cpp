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
// streams would get more of the GPU. Its O is the largest of its kernels', which stop together. A long block
// may run on after its turn. That time is taken off the tenant's next turn and added to the turn that it ran
// into. The paper charges no tenant for it; with long blocks, weights then have little effect. No turn is
// shorter than the longest stop plus `shortest`, or a small share would end before the others have stopped. A
// tenant that becomes idle in its turn keeps the turn for the idle grace period (idle_grace.h); else a
// program that launches, waits and launches again would get one launch a round. A tenant that is idle when
// its turn comes is skipped, and counts for T as long. A tenant alone runs without turns. Crowds of short
// kernels run at the same time, as under share (docs/policies.md).
//
// Without a profile, O is by estimate.h. Unmanaged work is not stopped, and runs in others' turns too.
//
// No tenant starves: a round is finite and includes all tenants with work.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/lookup.h"
#include "runtime/schedule/policies/idle_grace.h"
#include "runtime/schedule/policies/policies.h"

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
    bool runs_on = false;                // beyond its turn,
    TimePoint ended{};                   // which ended then
    std::optional<TimePoint> idle = {};  // start of the idle time
    Duration debt{};                     // for how long it ran on
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
        note_work(snapshot, now);
        note_debts(now);
        dismiss(now);
        crowded_ = is_crowd(snapshot);
        if (crowded_) {
            turn_.clear();
            return for_crowds_->want(snapshot, now, wanted);
        }
        take_turns(now, wanted);
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
            share->is_short &= kernel.predicted && *kernel.predicted <= knobs_.short_kernel;
            share->runs |= kernel.state != Kernel::State::kWaiting;
            share->weight = kernel.weight > 0 ? kernel.weight : 1;
            share->preemption_ns = std::max(share->preemption_ns, preemption_ns(kernel));
        }
        for (Share& share : ring_) {
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

    // Time that a block ran on into another turn is taken off the tenant's next turn, and the current turn is
    // extended by it.
    void note_debts(TimePoint now) {
        for (Share& share : ring_) {
            if (!share.runs_on || share.runs || share.tenant == turn_) continue;
            share.debt += now - share.ended;
            share.runs_on = false;
            if (!turn_.empty()) until_ += now - std::max(share.ended, began_);
        }
    }

    void take_turns(TimePoint now, Wanted& wanted) {
        auto holder = find(turn_);
        const bool holds = holder != ring_.end() && now < until_;
        // decide() is called when work ends, not while it runs: work that is gone was present until now.
        const bool worked = std::exchange(works_, holds && holder->has_work);
        if (works_ || worked) busy_ = now;
        const Duration gap = idle_grace_.of(turn_);
        if (!holds || (!works_ && now - busy_ >= gap)) {
            begin_next(holder, now);
        } else if (!works_) {
            wanted.ask_again(gap - (now - busy_));
        }
        const bool others = std::ranges::any_of(
            ring_, [&](const Share& each) { return each.tenant != turn_ && each.has_work; });
        if (others && until_ > now) wanted.ask_again(until_ - now);
    }

    // The turn goes to the next tenant with work in the ring; without a holder, from the beginning.
    void begin_next(std::vector<Share>::iterator holder, TimePoint now) {
        size_t at = 0;
        if (holder != ring_.end()) {
            holder->runs_on = holder->runs;
            holder->ended = now;
            at = static_cast<size_t>(holder - ring_.begin()) + 1;
        }
        const size_t end = at + ring_.size();
        while (at < end && !ring_[at % ring_.size()].has_work) ++at;
        turn_.clear();
        if (at == end) return;
        Share* const next = &ring_[at % ring_.size()];
        turn_ = next->tenant;
        began_ = busy_ = now;
        works_ = true;
        if (holder == ring_.end() || at >= ring_.size() || sharing_ != ring_.size()) epoch_ns_ = epoch_ns();
        sharing_ = ring_.size();
        const Duration turn = nanoseconds(epoch_ns_ * next->weight);
        if (next->runs_on) next->debt += now - next->ended;  // it still runs on
        const Duration paid = std::min(next->debt, turn - turn / kLeastPart);
        next->debt = std::min(next->debt - paid, turn);
        next->runs_on = false;
        until_ = now + turn - paid;
    }

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
    TimePoint began_{};
    TimePoint until_{};
    TimePoint busy_{};    // when the holder last had work
    bool works_ = false;  // the holder had work at the last call
};

}  // namespace

std::unique_ptr<Policy> make_fair(const FairKnobs& knobs) { return std::make_unique<Fair>(knobs); }

}  // namespace smt::runtime::schedule
