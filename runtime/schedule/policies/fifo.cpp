// First come, first served: the order of the hardware.
#include "runtime/schedule/policies/policies.h"

namespace smt::runtime::schedule {

namespace {

class Fifo final : public Policy {
public:
    Fifo() : Policy({"fifo", Stops::kNone}) {}
    bool leaves_alone() const override { return true; }
    void want(const Snapshot& snapshot, TimePoint, Wanted& wanted) override {
        for (const Kernel& kernel : snapshot.kernels) {
            if (kernel.state == Kernel::State::kWaiting) wanted.run(kernel, "first come, first served");
        }
    }
};

}  // namespace

std::unique_ptr<Policy> make_fifo() { return std::make_unique<Fifo>(); }

}  // namespace smt::runtime::schedule
