// The part of ManagedStream that launches kernels with doors, and graphs of such kernels. A stop writes one
// word, for all that is in flight. What is left of a launch is launched again from its frontier on, and the
// CTAs before it leave at once.
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/graph_doors.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

CUlaunchConfig config_of(Work& work, CUstream stream) {
    CUlaunchConfig config{};
    config.gridDimX = work.grid[0];
    config.gridDimY = work.grid[1];
    config.gridDimZ = work.grid[2];
    config.blockDimX = work.block[0];
    config.blockDimY = work.block[1];
    config.blockDimZ = work.block[2];
    config.sharedMemBytes = work.shared_bytes;
    config.hStream = stream;
    config.attrs = work.attributes.data();
    config.numAttrs = static_cast<unsigned>(work.attributes.size());
    return config;
}

}  // namespace

// Launches in flight are of one form at a time: two forms are stopped by two words, and a launch must not
// begin after an earlier one was stopped. Each graph has a word of its own, and no launch follows a resume of
// one.
bool ManagedStream::may_follow(const Work& work) const {
    if (in_flight_.empty()) return true;
    if (in_flight_.back().function->form != work.function->form) return false;
    if (work.graph)
        return in_flight_.back().graph == work.graph && in_flight_.front().done == 0 &&
               in_flight_.size() < GraphDoors::kMostLaunches;
    return !work.function->has_door() || (in_flight_.size() < kMostDoorRuns && !doors_.used_up());
}

bool ManagedStream::suits_door(const Work& work) {
    return work.graph || (work.total <= smt::kMostDoorUnits && work.unit != 0 && work.total % work.unit == 0);
}

void ManagedStream::note_launched(Work& work) {
    work.chunk = 1;
    work.tickets = 0;
    work.ctas = work.fits;
    work.launch = launches_++;
    Launched& launched = launched_[work.launch % kLaunchIds % launched_.size()];
    launched = {};
    launched.id = work.launch % kLaunchIds;
    launched.name = work.entry.name;
    launched.function = work.graph ? nullptr : work.function;  // nothing is learnt of graphs
    launched.shape = work.shape();
    launched.blocks = work.covered;
}

// What is left of it.
CUresult ManagedStream::issue_graph(Work& work) {
    work.covered = static_cast<uint32_t>(work.left());
    note_launched(work);
    bool anew = false;
    SMT_TRY(work.graph->prepare(stream_, dispatcher_.control(), &anew));
    if (anew) SMT_TRY(get_ready());
    return work.graph->launch(stream_, work.done != 0, !in_flight_.empty(), &work.run);
}

// Its next `blocks` (0: all that are left).
CUresult ManagedStream::issue_door(Work& work, uint64_t blocks) {
    if (work.graph) return issue_graph(work);
    bool anew = false;
    SMT_TRY(doors_.prepare(stream_, dispatcher_.control(), in_flight_.empty(), &anew));
    if (anew) SMT_TRY(get_ready());
    const uint64_t wanted = blocks ? (blocks + work.unit - 1) / work.unit * work.unit : work.left();
    work.covered = static_cast<uint32_t>(std::min(wanted, work.left()));
    const auto unit_at = [&](uint64_t block) { return static_cast<uint32_t>(block / work.unit); };
    // A block that waits for others finds the earlier ones admitted. Later ones it can wait for only where
    // all run at once: then all are admitted, or none.
    const bool at_once = work.total <= uint64_t{work.fits} * multiprocessors();
    const uint32_t shift =
        door_shift(work.total, work.unit, work.function->block_cost_ps.load(std::memory_order_relaxed),
                   work.function->waits && at_once);
    const smt::DoorLaunch door =
        doors_.next_run(unit_at(work.done), unit_at(work.done + work.covered), shift, &work.run);
    note_launched(work);
    work.parameters.resize(work.function->launch_offset + sizeof door);
    std::memcpy(work.parameters.data() + work.function->launch_offset, &door, sizeof door);
    size_t bytes = work.parameters.size();
    void* whole[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, work.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    const CUlaunchConfig config = config_of(work, stream_);
    dispatcher_.device().announce(work.entry);
    const CUresult status =
        dispatcher_.driver().cuLaunchKernelEx(&config, work.function->function, nullptr, whole);
    if (status != CUDA_SUCCESS) doors_.take_back();  // the runs in flight are one behind the other
    return status;
}

// The first launch as the run of quota mode, without quotas.
CUresult ManagedStream::run_door(Work& work, uint64_t blocks) {
    SMT_TRY(issue_door(work, blocks));
    if (!work.graph) SMT_TRY(doors_.report(stream_, work.run, work.run, &words_->frontiers));
    SMT_TRY(mark());
    state_ = State::kRunning;
    halted_ = false;
    since_ = dispatcher_.now();
    if (looks_on()) wake();  // the waiting thread polls from now on
    return CUDA_SUCCESS;
}

CUresult ManagedStream::stop_doors() {
    const CUstream control = dispatcher_.control();
    const Work& first = under_way_first();
    return first.graph ? first.graph->stop(control) : doors_.stop(control);
}

// A graph's words are read when it has ended.
CUresult ManagedStream::report_doors() {
    if (in_flight_.front().graph) return CUDA_SUCCESS;
    return doors_.report(stream_, in_flight_.front().run, in_flight_.back().run, &words_->frontiers);
}

// `run`: tickets run. `first`: the run with a door whose frontier was reported first.
void ManagedStream::settle(Work& work, uint32_t run, uint64_t first) {
    if (work.graph)
        work.covered = 0;  // settle_graph() has accounted for it
    else if (work.function->has_door())
        work.settle_door(words_->frontiers[work.run - first]);
    else
        work.settle(run);
}

// All that was under way is of one graph.
CUresult ManagedStream::settle_graph() {
    const std::shared_ptr<GraphDoors> graph = under_way_first().graph;
    if (!graph) return CUDA_SUCCESS;
    std::array<uint64_t, GraphDoors::kMostLaunches> done{};
    const bool one = state_ == State::kRunning;
    SMT_TRY(graph->settle(dispatcher_.device().errands(), one ? 1 : in_flight_.size(), done.data()));
    if (one) waiting_.front().done = done[0];
    for (size_t i = 0; !one && i < in_flight_.size(); ++i) in_flight_[i].done = done[i];
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::dispatch
