// Strict priority: the tenants of the highest priority among those with work run, everybody else is
// stopped between two blocks (opaque work: between two kernels) and goes on when that work is done. Within a
// priority the hardware decides.
//
// "Done" means that nothing has come for a while (kPatience): programs launch, wait, and launch again, and a
// stop costs up to a block's time, so to go on in such a gap costs the urgent more than it brings the others.
//
// A tenant of low priority may starve; that is what the name promises.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "runtime/schedule/policies/policies.h"

namespace smt::runtime::schedule {

namespace {

constexpr auto kPatience = std::chrono::microseconds(200);

class Priority final : public Policy {
public:
    std::string_view name() const override { return "priority"; }
    bool preempts() const override { return true; }

    Decision decide(const Snapshot& snapshot, TimePoint now) override {
        note_work(snapshot, now);
        Decision decision;
        if (snapshot.kernels.empty()) return decision;
        const Kernel& first = *std::max_element(snapshot.kernels.begin(), snapshot.kernels.end(),
                                                [](const Kernel& a, const Kernel& b) { return a.priority < b.priority; });
        for (const Kernel& kernel : snapshot.kernels) {
            if (kernel.priority < first.priority) {
                if (kernel.state == Kernel::State::kRunning)
                    decision.assignments.push_back({kernel.id, Assignment::Action::kWait,
                                                    fmt::format("{} for {} (priority {} over {})",
                                                                kernel.managed ? "stopped" : "held back", first.tenant,
                                                                first.priority, kernel.priority)});
            } else if (kernel.state == Kernel::State::kWaiting) {
                const Duration rest = rest_for(kernel.priority, now);
                if (rest > Duration::zero()) {
                    decision.ask_again(rest);
                } else {
                    decision.assignments.push_back({kernel.id, Assignment::Action::kRun, "goes on: nobody more urgent has work"});
                }
            }
        }
        return decision;
    }

private:
    // A priority whose work is gone was busy until now.
    void note_work(const Snapshot& snapshot, TimePoint now) {
        for (auto& [priority, work] : work_) {
            if (work.present) work.until = now;
            work.present = false;
        }
        for (const Kernel& kernel : snapshot.kernels) work_[kernel.priority] = {true, now};
    }

    Duration rest_for(int priority, TimePoint now) const {
        Duration rest{};
        for (auto each = work_.upper_bound(priority); each != work_.end(); ++each)
            rest = std::max<Duration>(rest, kPatience - (now - each->second.until));
        return rest;
    }

    struct Work {
        bool present = false;
        TimePoint until{};
    };
    std::map<int, Work> work_;   // by priority
};

}  // namespace

std::unique_ptr<Policy> make_priority() { return std::make_unique<Priority>(); }

}  // namespace smt::runtime::schedule
