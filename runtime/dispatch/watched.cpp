// The watch of endless kernels (kernel_watch.h): what it sees of a stream. And a stream that another process
// goes on with while its context here is whole.
#include <set>
#include <utility>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

CUresult ManagedStream::mark_before(uint64_t* before) {
    SMT_TRY(mark());
    *before = markers_.last();
    return CUDA_SUCCESS;
}

std::optional<Running> ManagedStream::running() {
    std::lock_guard lock(mutex_);
    prune();
    if (preemptor_.in(State::kStopped) || at_wait()) return std::nullopt;
    const LaunchQueue::Works &in_flight = queue_.in_flight(), &waiting = queue_.waiting();
    const Work* work = in_flight.empty() ? nullptr : &in_flight.front();
    if (preemptor_.in_quota_mode() && !waiting.empty()) work = &waiting.front();
    const uint64_t over = markers_.reached();
    if (!unmanaged_.in_flight.empty()) {
        const UnmanagedSide::Flight& flight = unmanaged_.in_flight.front();
        if (!work || !work->marker || flight.marker < work->marker)
            return flight.before <= over
                       ? std::optional(Running{
                             .launch = 2 * flight.marker + 1, .name = flight.name, .issued = flight.issued})
                       : std::nullopt;
    }
    if (!work || work->before > over) return std::nullopt;
    Running found{
        .launch = 2 * work->number, .progress = work->done, .name = work->entry.name, .issued = work->issued};
    found.stops = !work->endures;
    if (work->function->persistent()) {
        const uint32_t taken = samples_.taken() > work->ticket ? samples_.taken() - work->ticket : 0;
        found.progress += taken;
        found.seen = taken != 0;
        look_at_tickets();
    } else if (work->function->has_door()) {
        look_at_frontier(*work);
        found.progress += uint64_t{frontier_} << 32;
    }
    return found;
}

bool ManagedStream::knows_work() {
    std::lock_guard lock(mutex_);
    prune();
    return under_way() || !queue_.waiting().empty() || unmanaged_.wanting != 0 || at_wait() ||
           !preemptor_.in(State::kPassThrough);
}

// Without an answer the launch has the limit as a whole.
void ManagedStream::look_at_frontier(const Work& work) {
    StreamWords& words = markers_.words();
    if (words.frontier_sampled.load(std::memory_order_acquire) < frontiers_asked_) return;
    if (frontiers_asked_ > 0) frontier_ = words.frontier;
    if (door_.sample(work) != CUDA_SUCCESS) return;
    const CUstream errands = dispatcher_.device().errands();
    if (markers_.write(errands, &words.frontier_sampled, frontiers_asked_ + 1) == CUDA_SUCCESS)
        ++frontiers_asked_;
}

bool ManagedStream::set_aside(LaunchQueue::Works* kept) {
    Lock lock(mutex_);
    if (gone_) return true;
    stays_ = true;
    detour_.go_home();
    prune();
    bool stops = false;
    if (preemptor_.in(State::kPassThrough) && !queue_.in_flight().empty()) {
        if (queue_.unmarked()) mark();
        if (!queue_.last_let_pass()) stops = stop_in_flight();
    }
    if (preemptor_.in(State::kRunning) && markers_.reached() >= preemptor_.ready())
        stops = halt_run() == CUDA_SUCCESS;
    const bool under = under_way() || preemptor_.in_quota_mode() || preemptor_.stops();
    if (!under) {
        *kept = std::exchange(queue_.waiting(), {});
        gone_ = true;
        tell_changed();
    }
    lock.unlock();
    if (stops) dispatcher_.look_again();  // to see the end of the stop
    return !under;
}

std::vector<uint32_t> ManagedStream::held_launches() {
    std::lock_guard lock(mutex_);
    const LaunchQueue::Works& waiting = queue_.waiting();
    std::set<uint64_t> others;  // one that was stopped may be in several pieces
    for (const Work& each : queue_.in_flight()) others.insert(each.number);
    if (preemptor_.in_quota_mode() && !waiting.empty()) others.insert(waiting.front().number);
    std::vector<uint32_t> names;
    for (const Work& each : waiting)
        if (others.insert(each.number).second) names.push_back(each.entry.name);
    return names;
}

}  // namespace smt::runtime::dispatch
