// The part of ManagedStream that launches kernels with doors. A stop writes one word, for all that is in
// flight. What is left of a launch is launched again from its frontier on, and the CTAs before it leave at
// once.
#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

// A step of the frontier takes the GPU longer than a write to it needs to be seen. After a stop two more
// steps may begin. Units that wait for each other in small groups find their group whole.
constexpr uint64_t kStepPs = 2'000'000;
constexpr uint64_t kStepsUnknown = 1u << 10;  // of a launch of unknown time
constexpr uint32_t kLeastShift = 3, kMostShift = 12;

uint32_t shift_for(const Work& work) {
    const uint64_t block_ps = work.function->block_cost_ps.load(std::memory_order_relaxed);
    const uint64_t step =
        block_ps ? kStepPs / (block_ps * work.unit) : work.total / work.unit / kStepsUnknown;
    return std::clamp(static_cast<uint32_t>(std::bit_width(step)), kLeastShift, kMostShift);
}

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
// begin after an earlier one was stopped.
bool ManagedStream::may_follow(const Work& work) const {
    if (in_flight_.empty()) return true;
    if (in_flight_.back().function->form != work.function->form) return false;
    return !work.function->has_door() || in_flight_.size() < kMostDoorRuns;
}

// A block that waits for others finds the earlier ones admitted. Later ones it can wait for only where all
// run at once: such a launch is not stopped.
bool ManagedStream::suits_door(const Work& work) const {
    const bool at_once = work.total <= uint64_t{work.fits} * multiprocessors();
    return work.total <= smt::kMostDoorUnits && work.unit != 0 && work.total % work.unit == 0 &&
           !(work.function->waits && at_once);
}

// Its next `blocks` (0: all that are left).
CUresult ManagedStream::issue_door(Work& work, uint64_t blocks) {
    bool clears_stop = false;
    SMT_TRY(doors_.prepare(stream_, dispatcher_.control(), in_flight_.empty(), &clears_stop));
    if (clears_stop) SMT_TRY(get_ready());
    const uint64_t wanted = blocks ? (blocks + work.unit - 1) / work.unit * work.unit : work.left();
    work.covered = static_cast<uint32_t>(std::min(wanted, work.left()));
    const auto unit_at = [&](uint64_t block) { return static_cast<uint32_t>(block / work.unit); };
    const smt::DoorLaunch door =
        doors_.next_run(unit_at(work.done), unit_at(work.done + work.covered), shift_for(work), &work.run);
    work.chunk = 1;
    work.tickets = 0;
    work.ctas = work.fits;
    work.launch = launches_++;
    Launched& launched = launched_[work.launch % kLaunchIds % launched_.size()];
    launched = {};
    launched.id = work.launch % kLaunchIds;
    launched.name = work.entry.name;
    launched.function = work.function;
    launched.shape = work.shape();
    launched.blocks = work.covered;
    work.parameters.resize(work.function->launch_offset + sizeof door);
    std::memcpy(work.parameters.data() + work.function->launch_offset, &door, sizeof door);
    size_t bytes = work.parameters.size();
    void* whole[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, work.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    const CUlaunchConfig config = config_of(work, stream_);
    dispatcher_.device().announce(work.entry);
    return dispatcher_.driver().cuLaunchKernelEx(&config, work.function->function, nullptr, whole);
}

// The first launch as the run of quota mode, without quotas.
CUresult ManagedStream::run_door(Work& work, uint64_t blocks) {
    SMT_TRY(issue_door(work, blocks));
    SMT_TRY(doors_.report(stream_, work.run, work.run, &words_->frontiers));
    SMT_TRY(mark());
    state_ = State::kRunning;
    halted_ = false;
    since_ = dispatcher_.now();
    if (looks_on()) wake();  // the waiting thread polls from now on
    return CUDA_SUCCESS;
}

CUresult ManagedStream::stop_doors() { return doors_.stop(dispatcher_.control()); }

CUresult ManagedStream::report_doors() {
    return doors_.report(stream_, in_flight_.front().run, in_flight_.back().run, &words_->frontiers);
}

// `run`: tickets run. `first`: the run with a door whose frontier was reported first.
void ManagedStream::settle(Work& work, uint32_t run, uint64_t first) {
    if (work.function->has_door())
        work.settle_door(words_->frontiers[work.run - first]);
    else
        work.settle(run);
}

}  // namespace smt::runtime::dispatch
