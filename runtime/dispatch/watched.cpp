// The watch of endless kernels (server/kernel_watch.h): what it sees of a stream. And a stream that another
// process goes on with while its context here is whole.
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
    return what_runs();
}

std::optional<Running> ManagedStream::what_runs() {
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
        const uint32_t taken =
            samples_.taken() > work->tickets.first ? samples_.taken() - work->tickets.first : 0;
        found.progress += taken;
        found.seen = taken != 0;
        look_at_tickets();
    } else if (work->function->has_door()) {
        samples_.look(forms_.door(), *work, dispatcher_.device().errands());
        found.progress += uint64_t{samples_.frontier()} << 32;
    }
    return found;
}

bool ManagedStream::knows_work() {
    std::lock_guard lock(mutex_);
    prune();
    return under_way() || !queue_.waiting().empty() || unmanaged_.wanting != 0 || at_wait() ||
           !preemptor_.in(State::kPassThrough);
}

bool ManagedStream::set_aside(LaunchQueue::Works* kept) {
    Lock lock(mutex_);
    if (gone()) return true;
    client_ = Client::kMoves;
    detour_.go_home();
    prune();
    if (preemptor_.in(State::kPassThrough) && queue_.unmarked()) mark();
    const bool stops = !queue_.last_let_pass() && stop_what_runs();
    const bool under = under_way() || preemptor_.in_quota_mode() || preemptor_.stops();
    if (!under) {
        *kept = std::exchange(queue_.waiting(), {});
        client_ = Client::kGone;
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
