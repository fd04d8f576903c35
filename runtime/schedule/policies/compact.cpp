// Compact: every kernel on as few SMs as it needs, several kernels packed on them, and the SMs that are left
// over kept for who comes next. smCompactor (Chen and others), 3.3 to 3.5.
//
// A kernel wants the CTAs of its footprint, SMs x CTAs on each, with which its throughput saturates
// (profiler/models/saturation.h). Throughput goes with the number of CTAs (3.3), so it is the product that
// counts: beside others a kernel may be on more SMs with fewer CTAs on each, never with more on one. Kernels
// are placed in the order in which they came and stay where they are: first on SMs that others use, then on
// free ones, by index, as many as fit on each. A rest too small for a whole SM opens no further one: it would
// take it from the next. Tables are therefore uneven:
//
//     30 SMs.   FT 15 x 1        1 on SMs 0 to 14
//               LM 18 x 2        1 on 0 to 14, where FT leaves room for one; 2 on 15 to 24; 1 is left out
//               BS 15 x 16       12 on 15 to 24, beside LM; 16 on 25 to 29              (tables 2 and 3)
//
// Room that nobody wants any more on SMs in use goes to who has the longest way to go, up to its footprint's
// CTAs on an SM (4.3: "slightly tune up"); it is taken back whenever somebody comes. When a kernel has taken
// its last block, its SMs go to those that are short of CTAs, then to those that wait, by arrival.
// Programs launch, wait, and launch again: who has nothing to do keeps its place for a short time (idle_grace.h), or all others would move at each
// launch. If somebody has found no room it is given up at once.
// On the device the workers do the rest: one that finds its SM's quota filled retreats, until all SMs are
// fulfilled (3.5).
//
// Kernels without a footprint have the SMs that those with one leave free, all of them together, and share them as the hardware
// does; if there is none, the room left on the others. Where that is less than one equal part of the device, so many SMs are kept for them. So with no profiles at all this is fifo: nobody knows what could be saved, and equal
// parts of the SMs let eight tenants on an H200 get 45 jobs done where fifo had 109. Unmanaged work runs as it is, on SMs that are not counted.
//
// Nobody starves: who has found no room and waited too long (knobs.h) is placed first when all are placed
// anew; those that have no room then wait their time in turn.
#include <fmt/compile.h>
#include <fmt/format.h>

#include "runtime/schedule/policies/decision_diff.h"
#include "runtime/schedule/policies/aging.h"
#include "runtime/schedule/policies/placement.h"
#include "runtime/schedule/policies/policies.h"

namespace smt::runtime::schedule {

namespace {

class Compact final : public Policy {
public:
    explicit Compact(const CompactKnobs& knobs) : aging_(knobs.aging), placement_(knobs.idle_grace) {}
    std::string_view name() const override { return "compact"; }
    Stops stops() const override { return Stops::kAny; }
    bool short_stops() const override { return false; }

    Decision decide(const Snapshot& snapshot, TimePoint now) override {
        diff_.keep_only(snapshot);
        Decision decision;
        const bool changed = note_kernels(snapshot, now, decision);
        const Kernel* impatient = aging_.boosted(waiting_, now);
        aging_.ask_again(decision, waiting_, now);
        const uint64_t first = impatient ? impatient->id : 0;
        if (impatient && first != first_) {
            placement_.replace(snapshot.device, first);
        } else if (changed) {
            placement_.place(snapshot.device, first);
        }
        first_ = first;
        for (Placed& placed : placement_.rows()) say(placed, decision);
        return decision;
    }

private:
    // Whether somebody has come or gone.
    bool note_kernels(const Snapshot& snapshot, TimePoint now, Decision& decision) {
        waiting_.clear();
        placement_.begin();
        for (const Kernel& kernel : snapshot.kernels) {
            if (kernel.managed && !kernel.last_taken) {
                const Placed& placed = placement_.note(kernel);
                if (placed.total == 0 || kernel.id == first_) waiting_.push_back(&kernel);
            } else if (kernel.state == Kernel::State::kWaiting) {
                diff_.run(decision, kernel, {}, 0, [] { return std::string("runs as it is"); });
            }
        }
        const bool changed = placement_.end(now);
        if (const auto rest = placement_.forgets_after(now)) decision.ask_again(*rest);
        return changed;
    }

    void say(Placed& placed, Decision& decision) {
        if (!placed.kernel || (placed.said && placed.total > 0 && diff_.keeps_quota(*placed.kernel))) return;
        if (placed.total == 0) {
            diff_.wait(decision, *placed.kernel, [] { return std::string("no SM has room"); });
            return;
        }
        const Quota& table = placement_.table(placed);
        diff_.run(decision, *placed.kernel, table, 0, [&] { return fmt::format(FMT_COMPILE("{} CTAs on {} of {} SMs"), placed.total, placed.sms, table.size()); });
        placed.said = placed.kernel->state != Kernel::State::kStopping;   // else it is named again
    }

    Aging aging_;
    uint64_t first_ = 0;  // whose turn it was; 0: nobody's
    std::vector<const Kernel*> waiting_;   // of this snapshot, who has nothing or has its turn; kept for its memory
    Placement placement_;
    DecisionDiff diff_;
};

}  // namespace

std::unique_ptr<Policy> make_compact(const CompactKnobs& knobs) { return std::make_unique<Compact>(knobs); }

}  // namespace smt::runtime::schedule
