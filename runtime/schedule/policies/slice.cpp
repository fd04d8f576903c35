// Slice: two kernels that go well together run side by side. Kernelet (Zhong and He), 4.1 to 4.4, Algorithm
// 1, with the model of profiler/models/co_schedule.h.
//
// Pairs that are too alike in PUR and MUR are pruned (4.3). Of the remaining pairs the one with the largest
// co-scheduling profit CP (equation 1) runs, with the blocks of each on an SM that give it. If every pair is
// pruned, the thresholds are halved until one is not. A pair without profit is not run: the kernel that came
// first runs alone, until a kernel comes or goes. A pair stays until one of the two has taken its last block,
// whichever kernels come meanwhile (Algorithm 1, line 8). While one of them works an idle one keeps its place
// (docs/policies.md, slice), but no kernel waits for an idle pair: the choice that runs until both are back
// is provisional.
//
// Here both kernels have quotas and stop at any block, so slicing is not needed. Measured: sliced pairs are
// slower (docs/results.md#queue-unsliced). The likely cause: multiprocessors run empty at the end of a slice,
// and the next slice is the younger of the two, which the hardware serves last.
//
// knobs.slices selects the paper's form. A slice is the smallest for which slicing costs at most p % (4.1):
// with overhead o for a slice and time t_b for a block, at least o / (p t_b) blocks, rounded up to a whole
// number for each SM. A pair's slices are the balanced blocks on each SM times the same whole number, such
// that both are large enough. They end together (equation 8).
//
//     132 SMs, blocks {3, 5}, smallest slices 396 and 1200: two rounds, slices of 792 and 1320
//
// CP is the measured one, or else the model's, which includes stalls and the times of the kernel alone with
// fewer CTAs (co_schedule.h). With knobs.slices the model is the paper's, which knows only R_m. CP is found
// or computed once for two profiles, mostly ahead of the decision (pairs.h).
//
// A kernel without an instruction mix, or on a device without a model, that was not measured beside another
// runs as it is, beside any pair, until it has a profile. So does unmanaged work. Without times t_b is by
// estimate.h.
//
// No kernel starves, although the best pair may stay the same: a kernel that has waited for the starvation
// timeout (knobs.h) is in the next pair, with its best partner or alone, for a turn at least.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/schedule/combinations.h"
#include "runtime/schedule/estimate.h"
#include "runtime/schedule/lookup.h"
#include "runtime/schedule/policies/exploration.h"
#include "runtime/schedule/policies/idle_grace.h"
#include "runtime/schedule/policies/pairs.h"
#include "runtime/schedule/policies/policies.h"

namespace smt::runtime::schedule {

namespace {

using Kernels = Pairs::Kernels;

constexpr double kMostRounds = 1 << 20;  // of a slice, for any profile

class Slice final : public Policy {
public:
    explicit Slice(const SliceKnobs& knobs)
        : Policy({.name = knobs.slices ? "slice-paper" : "slice",
                  .stops = Stops::kAny,
                  .short_stops = false,
                  .explores = Explores::kPairs},
                 knobs.aging),
          knobs_(knobs),
          idle_grace_(knobs.idle_grace),
          pairs_(knobs),
          exploration_(Exploration::What::kPairs, knobs.exploration) {}

    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        const bool tries = exploration_.decides(snapshot, now, wanted);
        const Kernels& known = known_of(snapshot);
        note_order(known);
        note_members(snapshot, now);
        if (tries) return;
        for (const Kernel& kernel : snapshot.kernels) {
            if (kernel.managed && knows(kernel, snapshot.device)) continue;
            if (kernel.state == Kernel::State::kWaiting || kernel.managed)
                wanted.run(kernel, "runs as it is: no profile");
        }
        choose(known, snapshot.device, now);
        if (const auto rest = gap_left(now)) wanted.ask_again(*rest);
        aging().ask_again(wanted, known, now);
        for (const Kernel* kernel : known) say(*kernel, snapshot.device, wanted);
    }

    std::unique_ptr<Study> study(const Snapshot& snapshot) override {
        return pairs_.study(known_of(snapshot), snapshot.device);
    }
    void learn(std::unique_ptr<Study> study) override { pairs_.learn(std::move(study)); }

private:
    // While some combinations of a pair are missing the others say little of what the best one is.
    bool knows(const Kernel& kernel, const Device& device) const {
        if (!Pairs::knows(kernel, device)) return false;
        const Profile& profile = *kernel.profile;
        return profile.mix || exploration_.explored(profile) ||
               std::ranges::any_of(profile.beside, [](const Beside& each) { return !each.learnt; });
    }

    // The kernels that can be paired and have blocks left to take.
    const Kernels& known_of(const Snapshot& snapshot) {
        known_.clear();
        for (const Kernel& kernel : snapshot.kernels) {
            if (kernel.managed && !kernel.last_taken && knows(kernel, snapshot.device))
                known_.push_back(&kernel);
        }
        return known_;
    }

    // Updates the members of the pair.
    void note_members(const Snapshot& snapshot, TimePoint now) {
        for (const Kernel& kernel : snapshot.kernels) {
            if (kernel.managed) idle_grace_.works(kernel.id, now);  // also if the stream's place is taken
        }
        for (Member& member : chosen_.members) {
            const auto found = std::ranges::find_if(snapshot.kernels, [&](const Kernel& each) {
                return each.id == member.name.first && each.managed;
            });
            const bool there = found != snapshot.kernels.end(),
                       waits = chosen_.pair() && knobs_.idle_grace > Duration::zero();
            const bool same = there && found->name() == member.name;
            if (!there) idle_grace_.gone(member.name.first, now);
            if (same)
                member.gone.reset();
            else if (!member.gone)
                member.gone = now;
            member.at_work = same && !found->last_taken;
            member.stays =
                member.at_work ||
                (waits && (same || (!there && now - *member.gone < idle_grace_.of(member.name.first))));
        }
    }

    // Time until an idle member is given up.
    std::optional<Duration> gap_left(TimePoint now) const {
        std::optional<Duration> rest;
        for (const Member& member : chosen_.members) {
            if (!member.gone || !member.stays) continue;
            const Duration left = idle_grace_.of(member.name.first) - (now - *member.gone);
            rest = std::min(rest.value_or(left), left);
        }
        return rest;
    }

    void choose(const Kernels& known, const Device& device, TimePoint now) {
        const Kernel* impatient = aging().boosted(known, now);
        const bool in_it = impatient && (is(*impatient, 0) || is(*impatient, 1));
        const std::vector<Member>& members = chosen_.members;
        const bool both = chosen_.pair() && members[0].stays && members[1].stays,
                   works = both && (members[0].at_work || members[1].at_work);
        const bool turn_is_over = chosen_.for_turn && !impatient, back = now < back_until_ && !saw(known);
        const bool pair_goes_on = works && !turn_is_over && !back;
        if (both && !works)
            back_until_ =
                now + std::max(idle_grace_.of(members[0].name.first), idle_grace_.of(members[1].name.first));
        const bool alone_goes_on = !chosen_.pair() && saw(known) && !turn_is_over;
        if ((!impatient || in_it) && (pair_goes_on || alone_goes_on)) return;
        seen_.clear();
        for (const Kernel* each : known) seen_.push_back(each->name());
        chosen_ = {};
        if (known.empty()) return;
        const std::optional<Pairs::Found> best = pairs_.best(known, impatient, device);
        if (best) {
            chosen_ = {{{best->first->name()}, {best->second->name()}},
                       best->together.blocks,
                       best->together.profit,
                       best->measured,
                       best->measured && learnt_of(*best)};
            if (knobs_.slices) chosen_.rounds = slice_rounds(*best, device);
        } else {
            chosen_.members = {{(impatient ? impatient : oldest(known))->name()}};
        }
        chosen_.for_turn = impatient != nullptr;
    }

    static bool learnt_of(const Pairs::Found& pair) {
        const models::Blocks& blocks = pair.together.blocks;
        const Beside* const rate =
            rate_beside(*pair.first->profile, *pair.second->profile, blocks[0], blocks[1]);
        return rate && rate->learnt;
    }

    // The rounds of the balanced blocks that are large enough for both kernels: slices end together (equation
    // 8).
    int slice_rounds(const Pairs::Found& pair, const Device& device) const {
        const models::Blocks& blocks = pair.together.blocks;
        return static_cast<int>(
            std::max(rounds(*pair.first, device, blocks[0]), rounds(*pair.second, device, blocks[1])));
    }

    // Order of arrival; ties in the order of the snapshot.
    void note_order(const Kernels& known) {
        size_t next = 0;
        std::erase_if(order_, [&](const LaunchName& name) {
            return find_from(known, next, [&](const Kernel* each) { return each->name() == name; }) ==
                   known.size();
        });
        next = 0;
        for (const Kernel* each : known) {
            const LaunchName name = each->name();
            if (find_from(order_, next, [&](const LaunchName& one) { return one == name; }) == order_.size())
                order_.push_back(name);
        }
    }
    const Kernel* oldest(const Kernels& known) const {
        return *std::ranges::find_if(known,
                                     [&](const Kernel* each) { return each->name() == order_.front(); });
    }

    void say(const Kernel& kernel, const Device& device, Wanted& wanted) {
        if (chosen_.pair() && (is(kernel, 0) || is(kernel, 1))) {
            const int blocks = chosen_.blocks[is(kernel, 1)];
            const uint64_t slice =
                static_cast<uint64_t>(blocks) * static_cast<uint64_t>(device.sms() * chosen_.rounds);
            wanted.run(kernel, even_quota(blocks), slice, [&] {
                return fmt::format("{} CTAs an SM beside another, {}to save {:.0f} %", blocks,
                                   chosen_.learnt     ? "learnt "
                                   : chosen_.measured ? "measured "
                                                      : "",
                                   chosen_.profit * 100);
            });
        } else if (!chosen_.pair() && is(kernel, 0)) {
            wanted.run(kernel, "alone: no pair is better");
        } else {
            wanted.wait(kernel, "others are a better pair, or came first");
        }
    }

    // For p % (4.1). In blocks, a multiple of the SMs.
    uint64_t smallest_slice(const Kernel& kernel, const Device& device) const {
        const double sms = device.sms();
        const int most = most_ctas(kernel, limits_of(device));
        const uint64_t left = blocks_left(kernel);
        const double block_ns =
            left ? remaining_ns(kernel, device, most) / static_cast<double>(left) : kBlockNs / (most * sms);
        const auto& measured = kernel.profile->slice_overhead;
        const double overhead_ns = measured ? static_cast<double>(measured->count()) : kSliceNs;
        const double blocks = overhead_ns / (knobs_.overhead * std::max(block_ns, 1e-3));
        return static_cast<uint64_t>(std::max(1.0, std::ceil(blocks / sms)) * sms);
    }
    double rounds(const Kernel& kernel, const Device& device, int blocks) const {
        const auto each = static_cast<uint64_t>(blocks) * static_cast<uint64_t>(device.sms());
        return std::min(kMostRounds, static_cast<double>((smallest_slice(kernel, device) + each - 1) / each));
    }

    bool saw(const Kernels& kernels) const {  // exactly these
        return std::equal(seen_.begin(), seen_.end(), kernels.begin(), kernels.end(),
                          [](const LaunchName& name, const Kernel* each) { return name == each->name(); });
    }
    bool is(const Kernel& kernel, size_t which) const {
        return which < chosen_.members.size() && chosen_.members[which].name == kernel.name();
    }

    struct Member {
        LaunchName name;
        bool at_work = true, stays = true;
        std::optional<TimePoint> gone = {};  // start of the idle time
    };

    struct Chosen {
        bool pair() const { return members.size() == 2; }
        std::vector<Member> members;  // none, one alone, or two
        models::Blocks blocks{};      // of each, on an SM
        double profit = 0;
        bool measured = false;  // the profit was measured; else it is the model's
        bool learnt = false;    // it was measured while programs ran
        int rounds = 0;         // of these blocks in a slice of each; 0: no slices
        bool for_turn = false;  // of a kernel that had waited too long
    };

    SliceKnobs knobs_;
    Kernels known_;                   // of the snapshot; kept for its memory
    IdleGrace<uint64_t> idle_grace_;  // by stream
    Pairs pairs_;
    Exploration exploration_;
    Chosen chosen_;
    std::vector<LaunchName> seen_;   // R, at the last choice
    TimePoint back_until_{};         // both of a pair ended at once: until then arrivals change the choice
    std::vector<LaunchName> order_;  // by arrival
};

}  // namespace

std::unique_ptr<Policy> make_slice(const SliceKnobs& knobs) { return std::make_unique<Slice>(knobs); }

}  // namespace smt::runtime::schedule
