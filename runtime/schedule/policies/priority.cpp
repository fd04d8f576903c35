// Strict priority: the tenants of the highest priority among those with work run, everybody else is
// stopped between two blocks and goes on when that work is done. Within a priority the hardware decides.
//
// A tenant of low priority may starve; that is what the name promises.
#include <algorithm>

#include <fmt/format.h>

#include "runtime/schedule/policies/policies.h"

namespace smt::runtime::schedule {

namespace {

class Priority final : public Policy {
public:
    std::string_view name() const override { return "priority"; }
    bool preempts() const override { return true; }

    Decision decide(const Snapshot& snapshot, TimePoint) override {
        Decision decision;
        if (snapshot.kernels.empty()) return decision;
        const Kernel& first = *std::max_element(snapshot.kernels.begin(), snapshot.kernels.end(),
                                                [](const Kernel& a, const Kernel& b) { return a.priority < b.priority; });
        for (const Kernel& kernel : snapshot.kernels) {
            if (kernel.priority < first.priority) {
                if (kernel.managed && kernel.state == Kernel::State::kRunning)
                    decision.assignments.push_back({kernel.id, Assignment::Action::kWait,
                                                    fmt::format("stopped for {} (priority {} over {})", first.tenant,
                                                                first.priority, kernel.priority)});
            } else if (kernel.state == Kernel::State::kWaiting) {
                decision.assignments.push_back({kernel.id, Assignment::Action::kRun, "goes on: nobody more urgent has work"});
            }
        }
        return decision;
    }
};

}  // namespace

std::unique_ptr<Policy> make_priority() { return std::make_unique<Priority>(); }

}  // namespace smt::runtime::schedule
