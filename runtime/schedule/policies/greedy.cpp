// Greedy: CTAs go, one configuration at a time, to the kernel with the most time left. Adaptive Simultaneous
// Multi-tenancy for GPUs (Bashizade, Li and Lebeck): Algorithm 1 (allocation.h).
//
// If the smallest configurations do not fit together, the paper launches all kernels with them, and those
// without room wait in the hardware's queue. But workers leave when their launch ends, not with each block,
// so that wait could be long. So here kernels with CTAs go on, others join as far as they fit, and the
// remaining ones wait for a turn (knobs.h), in which they are placed first. That is not in the paper.
//
// Quotas are computed when a kernel arrives and when a kernel has taken its last block (3.2). From then on no
// quota affects that kernel, and the CTAs that it frees are given out while its last blocks run. Other events
// change no quota.
//
//     A alone: 5.   B arrives: A 3, B 3.   B has taken its last block: A 5      (figure 6)
//
// While all kernels are short they run without quotas (short_kernels.h). The paper's are long.
//
// Unmanaged work runs as it is, and takes room that is not counted.
//
// No kernel starves: a kernel that is stopped as a whole gets a turn.
#include <fmt/format.h>

#include "runtime/schedule/policies/allocation.h"
#include "runtime/schedule/policies/policies.h"
#include "runtime/schedule/policies/short_kernels.h"

namespace smt::runtime::schedule {

namespace {

class Greedy final : public Policy {
public:
    explicit Greedy(const GreedyKnobs& knobs)
        : Policy({"greedy", Stops::kAny}, knobs.aging), short_(knobs.short_kernel) {}

    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        if (only_short_kernels(snapshot, short_)) {
            given_.clear();
            leave_to_hardware(snapshot, wanted);
            return;
        }
        const bool waited = tenant_waits();
        const Kernel* turn = waited ? aging().boosted(counted(snapshot), now) : nullptr;
        if (arrived_or_last_taken(snapshot) || (turn && waits(*turn))) give_out(snapshot, turn);
        if (tenant_waits()) {
            if (!waited) aging().boosted(counted(snapshot), now);
            aging().ask_again(wanted, counted_, now);
        }
        const auto others =
            std::ranges::count_if(given_, [](const Given& each) { return each.ctas > 0; }) - 1;
        size_t next = 0;
        for (const Kernel& kernel : snapshot.kernels) {
            const Given* const found = given(kernel, next);
            if (found && found->ctas > 0) {
                const auto on_each = static_cast<uint8_t>(found->ctas);
                wanted.run(kernel, {&on_each, 1}, 0, [&] {
                    return fmt::format("{} CTAs an SM, beside {} others", found->ctas, others);
                });
            } else if (found) {
                wanted.wait(kernel, "no CTA of it fits beside the others: it will have its turn");
            } else {
                wanted.resume(kernel, "runs as it is");
            }
        }
    }

private:
    struct Given {
        LaunchName name;
        int ctas;  // 0: it waits for its turn
    };
    static bool counts(const Kernel& kernel) { return kernel.managed && !kernel.last_taken; }

    bool arrived_or_last_taken(const Snapshot& snapshot) const {
        size_t same = 0, next = 0;
        for (const Kernel& kernel : snapshot.kernels) {
            if (!counts(kernel)) continue;
            if (!given(kernel, next)) return true;
            ++same;
        }
        return same != given_.size();
    }

    // `turn`: the kernel that goes first where not all fit; null: none has waited for the timeout.
    void give_out(const Snapshot& snapshot, const Kernel* turn) {
        const Resources limits = limits_of(snapshot.device);
        all_.clear();
        for (const Kernel& kernel : snapshot.kernels) {
            if (counts(kernel)) all_.emplace_back(kernel, snapshot.device, limits);
        }
        rows_.clear();
        for (Allocated& row : all_) rows_.push_back(&row);
        if (!free_beside(rows_, limits)) leave_out(limits, turn);
        allocate(rows_, limits);
        given_.clear();
        for (const Allocated& row : all_) given_.push_back({row.kernel->name(), row.ctas});
    }

    // Leaves out kernels that do not fit beside those before them. The order: the turn, kernels with CTAs,
    // waiting kernels, new kernels. Kernels with unknown CTA resources stay, and kernels of tenants with
    // multiprocessors of their own: the room that they take is not known.
    void leave_out(const Resources& limits, const Kernel* turn) {
        size_t next = 0;
        for (Allocated& row : all_) {
            const Given* const before = given(*row.kernel, next);
            row.rank = row.kernel == turn ? 0 : !before ? 3 : before->ctas > 0 ? 1 : 2;
        }
        Resources free = limits;
        rows_.clear();
        for (int rank = 0; rank <= 3; ++rank) {
            for (Allocated& row : all_) {
                if (row.rank != rank) continue;
                const bool counts = row.kernel->cta != Resources{} && !row.kernel->own_sms;
                const bool has_room = counts && holds(free, row.cta, 1);
                if (has_room) take(free, row.cta, 1);
                if (!counts || has_room || rows_.empty())
                    rows_.push_back(&row);
                else
                    row.ctas = 0;
            }
        }
    }

    bool waits(const Kernel& kernel) const {
        size_t next = 0;
        const Given* const found = given(kernel, next);
        return found && found->ctas == 0;
    }
    bool tenant_waits() const {
        return std::ranges::any_of(given_, [](const Given& each) { return each.ctas == 0; });
    }

    const std::vector<const Kernel*>& counted(const Snapshot& snapshot) {
        counted_.clear();
        for (const Kernel& kernel : snapshot.kernels) {
            if (counts(kernel)) counted_.push_back(&kernel);
        }
        return counted_;
    }

    // Null: it has none yet. `next` as in find_from(), for a loop over a snapshot.
    const Given* given(const Kernel& kernel, size_t& next) const {
        if (!counts(kernel)) return nullptr;
        const size_t place =
            find_from(given_, next, [&](const Given& each) { return each.name == kernel.name(); });
        return place == given_.size() ? nullptr : &given_[place];
    }

    const Duration short_;
    std::vector<const Kernel*> counted_;
    std::vector<Given> given_;
    std::vector<Allocated> all_;  // of a decision; kept for its memory
    Allocation rows_;             // the kernels that are not left out
};

}  // namespace

std::unique_ptr<Policy> make_greedy(const GreedyKnobs& knobs) { return std::make_unique<Greedy>(knobs); }

}  // namespace smt::runtime::schedule
