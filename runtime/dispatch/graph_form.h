// Launches of graphs whose kernels have doors (graph_doors.h). What is in flight is of one graph, since each
// has a stop word of its own.
#pragma once

#include <array>

#include "runtime/dispatch/graph_doors.h"
#include "runtime/dispatch/launch_form.h"

namespace smt::runtime::dispatch {

class GraphForm final : public LaunchForm {
public:
    using LaunchForm::LaunchForm;

    bool may_follow(size_t in_flight) const override { return in_flight < GraphDoors::kMostLaunches; }
    bool follows(const Work& work, const Work& first) const override {
        return work.graph == first.graph && first.done == 0;  // no launch follows a resume
    }
    CUresult prepare(const Work& work, bool idle, bool* anew) override;
    CUresult launch(Work& work) override;
    CUresult stop(bool inside) override;
    CUresult collect(const Work& first) override;  // there is no report: reads the words
    void settle(Work& work) override;

private:
    std::shared_ptr<GraphDoors> graph_;  // that was launched last
    bool idle_ = true;                   // as prepare() was told
    uint64_t first_ = 0;                 // the first launch that collect() was for
    std::array<uint64_t, GraphDoors::kMostLaunches> done_{};
};

}  // namespace smt::runtime::dispatch
