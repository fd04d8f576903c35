// Launches of kernels with doors: a stop writes one word, for what is in flight. What is left of a launch
// is launched again from its frontier on, and the CTAs before it leave at once.
#pragma once

#include "runtime/dispatch/door_control.h"
#include "runtime/dispatch/launch_form.h"

namespace smt::runtime::dispatch {

class DoorForm final : public LaunchForm {
public:
    explicit DoorForm(const Parts& parts);

    bool suits(const Work& work) const override;
    bool may_follow(size_t in_flight) const override {
        return in_flight < kMostDoorRuns && !doors_.used_up();
    }
    CUresult prepare(const Work& work, bool idle, bool* anew) override;
    CUresult launch(Work& work) override { return launch(work, 0); }
    CUresult run(Work& work, uint64_t blocks) override;
    bool let_pass() override {
        doors_.end_segment();
        return true;
    }
    // Whether a stop would save enough of its time; else its CTAs need not ask.
    bool worth_stopping(const Work& work) const override;
    CUresult stop(bool inside) override;
    CUresult report(const Work& first, const Work& last) override;
    CUresult collect(const Work& first) override;
    // Enqueues a copy of the frontier of a run that is under way to StreamWords::frontier. Does not wait.
    CUresult sample(const Work& work);
    void settle(Work& work) override;

private:
    CUresult launch(Work& work, uint64_t blocks);
    bool confinable(const Work& work) const;

    DoorControl doors_;
    uint64_t first_ = 0;  // the run whose frontier was reported first
};

}  // namespace smt::runtime::dispatch
