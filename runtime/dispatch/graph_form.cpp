#include "runtime/dispatch/graph_form.h"

#include "runtime/dispatch/dispatcher.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

CUresult GraphForm::prepare(const Work& work, bool idle, bool* anew) {
    idle_ = idle;
    SMT_TRY(parts_.detour.go_home());
    return work.graph->prepare(parts_.stream, parts_.dispatcher.supplies().control(), anew);
}

// What is left of it. Nothing is learnt of graphs.
CUresult GraphForm::launch(Work& work) {
    work.covered = static_cast<uint32_t>(work.left());
    work.tickets = {};
    work.ctas = work.fits;
    parts_.learner.begin(work).function = nullptr;
    graph_ = work.graph;
    const device::LaunchesOf watched(launch_of(work));
    return graph_->launch(parts_.stream, work.done != 0, !idle_, &work.run);
}

CUresult GraphForm::stop(bool /*inside*/) { return graph_->stop(parts_.dispatcher.supplies().control()); }

CUresult GraphForm::collect(const Work& first) {
    first_ = first.run;
    return graph_->settle(parts_.dispatcher.device().errands(), first.run, done_.data());
}

void GraphForm::settle(Work& work) {
    work.done = done_[work.run - first_];
    work.covered = 0;
}

}  // namespace smt::runtime::dispatch
