// Compact: packs kernels onto as few SMs as they need and keeps the remaining SMs free for later kernels.
// smCompactor (Chen and others), 3.3 to 3.5.
//
// A kernel needs the CTAs of its footprint: SMs times CTAs on each, with which its throughput saturates
// (profiler/models/saturation.h). Throughput depends on the number of CTAs (3.3), so the product counts:
// beside other kernels a kernel may use more SMs with fewer CTAs on each, but never more CTAs on one SM.
// Kernels are placed in the order of arrival and keep their place. Used SMs come first, then free ones, by
// index, with as many CTAs as fit on each. A remainder too small for a whole SM does not open another one,
// which the next kernel would miss. So tables are uneven:
//
//     30 SMs.   FT 15 x 1        1 on SMs 0 to 14
//               LM 18 x 2        1 on 0 to 14, where FT leaves room for one; 2 on 15 to 24; 1 is left out
//               BS 15 x 16       12 on 15 to 24, beside LM; 16 on 25 to 29              (tables 2 and 3)
//
// Spare room on used SMs goes to the kernel with the most time left, up to its footprint's CTAs on an SM
// (4.3: "slightly tune up"). It is taken back when a kernel arrives. When a kernel has taken its last block,
// its SMs go to kernels that are short of CTAs, then to waiting kernels, by arrival. Programs launch, wait,
// and launch again. So an idle kernel keeps its place for the idle grace period (idle_grace.h); else all
// other kernels would move at each launch. The place is given up at once if a kernel has found no room. On
// the device the workers do the rest: a worker on an SM with a filled quota retreats, until all SMs are
// filled (3.5).
//
// Kernels without a footprint use all SMs that the other kernels leave free, and the hardware shares these
// among them. If no SM is free, they get the spare room on the others. If that is less than an equal part of
// the device, so many SMs are reserved for them. So with no profiles at all compact behaves like fifo
// (docs/policies.md), and while all kernels are short, too (short_kernels.h), which is not in the paper.
// Unmanaged work runs as it is, on SMs that are not counted.
//
// No kernel starves. A kernel that has found no room for the starvation timeout (knobs.h) is placed first
// when all are placed anew; kernels without room then wait in turn.
#include <fmt/compile.h>
#include <fmt/format.h>

#include "runtime/schedule/policies/exploration.h"
#include "runtime/schedule/policies/placement.h"
#include "runtime/schedule/policies/policies.h"
#include "runtime/schedule/policies/short_kernels.h"

namespace smt::runtime::schedule {

namespace {

class Compact final : public Policy {
public:
    explicit Compact(const CompactKnobs& knobs)
        : Policy(
              {.name = "compact", .stops = Stops::kAny, .short_stops = false, .explores = Explores::kKernels},
              knobs.aging),
          short_(knobs.short_kernel),
          placement_(knobs.idle_grace),
          exploration_(Exploration::What::kFootprints, knobs.exploration) {}

    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        if (only_short_kernels(snapshot, short_)) {
            placement_.begin();
            placement_.end(now);
            leave_to_hardware(snapshot, wanted);
            return;
        }
        changed_ |= note_kernels(snapshot, now, wanted);
        if (exploration_.decides(snapshot, now, wanted)) {
            for (Placed& placed : placement_.rows()) placed.said = false;  // they have other tables meanwhile
            return;
        }
        const bool changed = std::exchange(changed_, false);
        const Kernel* impatient = aging().boosted(waiting_, now);
        aging().ask_again(wanted, waiting_, now);
        const uint64_t first = impatient ? impatient->id : 0;
        const bool anew = impatient && first != first_;
        if (anew || changed) placement_.place(snapshot.device, first, anew);
        first_ = first;
        for (Placed& placed : placement_.rows()) say(placed, wanted);
    }

private:
    // Whether any kernel has come or gone.
    bool note_kernels(const Snapshot& snapshot, TimePoint now, Wanted& wanted) {
        waiting_.clear();
        placement_.begin();
        for (const Kernel& kernel : snapshot.kernels) {
            if (kernel.managed && !kernel.last_taken) {
                const Placed& placed = placement_.note(kernel);
                if (placed.total == 0 || kernel.id == first_) waiting_.push_back(&kernel);
            } else {
                wanted.resume(kernel, "runs as it is");
            }
        }
        const bool changed = placement_.end(now);
        if (const auto rest = placement_.forgets_after(now)) wanted.ask_again(*rest);
        return changed;
    }

    void say(Placed& placed, Wanted& wanted) {
        if (!placed.kernel || (placed.said && placed.total > 0 && wanted.has_quota(*placed.kernel))) return;
        if (placed.total == 0) {
            wanted.wait(*placed.kernel, "no SM has room");
            return;
        }
        const Quota table = Placement::table(placed);
        wanted.run(*placed.kernel, table, 0, [&] {
            const bool learnt = placed.profile && placed.profile->footprint_learnt;
            return fmt::format(FMT_COMPILE("{} CTAs on {} of {} SMs{}"), placed.total, placed.sms,
                               table.size(), learnt ? ", as was learnt" : "");
        });
        placed.said = placed.kernel->state != Kernel::State::kStopping;  // else it is named again
    }

    const Duration short_;
    uint64_t first_ = 0;                  // the kernel that had the turn; 0: none
    std::vector<const Kernel*> waiting_;  // without CTAs, or with the turn; kept for its memory
    Placement placement_;
    bool changed_ = false;  // kernels have come or gone since they were placed
    Exploration exploration_;
};

}  // namespace

std::unique_ptr<Policy> make_compact(const CompactKnobs& knobs) { return std::make_unique<Compact>(knobs); }

}  // namespace smt::runtime::schedule
