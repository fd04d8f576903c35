// Pass-through mode: launches go to the driver back to back, up to the launch-ahead limit (launch_ahead.h).
#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

// A marker follows at least every so many launches. What is complete is forgotten then.
constexpr uint32_t kLaunchesBetweenMarkers = 32;
// Few launches with doors are in flight at a time.
constexpr uint32_t kDoorsBetweenMarkers = 16;
// Limit of a stream's ticket count. A launch has at most kMostBlocks tickets, and the word's high half is
// used otherwise. Beyond the limit the count begins again.
constexpr uint32_t kMostTickets = (1u << 31) - kMostBlocks - (1u << 20);
constexpr auto kTail = std::chrono::microseconds(100);  // without a launch: no further one follows

}  // namespace

CUresult ManagedStream::pass_through() {
    std::lock_guard lock(mutex_);
    if (state_ != State::kStopped) return CUDA_SUCCESS;
    state_ = State::kPassThrough;
    since_ = dispatcher_.now();
    top_up();
    if (unmarked_) mark();
    tell_changed();
    return failed_;
}

void ManagedStream::top_up() {
    if (state_ != State::kPassThrough || waiting_.empty()) return;
    while (!waiting_.empty() && !over_launch_ahead()) {
        if (!may_follow(waiting_.front())) {
            if (unmarked_) mark();
            return;
        }
        Work work = std::move(waiting_.front());
        waiting_.pop_front();
        CUresult status = issue(std::move(work));
        // For a caller of launch() NOT_SUPPORTED means another form of the same launch.
        if (status == CUDA_ERROR_NOT_SUPPORTED) status = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        if (failed_ == CUDA_SUCCESS) failed_ = status;
    }
}

bool ManagedStream::tickets_used_up() const { return next_ticket_ >= kMostTickets; }

bool ManagedStream::over_launch_ahead() {
    if (tickets_used_up() && !in_flight_.empty()) return true;
    return launch_ahead_.full(in_flight_) && !launch_ahead_.lets_go(in_flight_, dispatcher_.now());
}

void ManagedStream::go_on() {
    prune();
    top_up();
}

bool ManagedStream::keeps_back() {
    std::lock_guard lock(mutex_);
    return state_ == State::kPassThrough && !waiting_.empty();
}

CUresult ManagedStream::issue_workers(Work& work) {
    if (tickets_used_up()) {  // and no launch is in flight
        SMT_TRY(control_.reset(stream_));
        SMT_TRY(get_ready());
        next_ticket_ = 0;
        forget_sample();
    }
    smt::Launch launch;
    uint32_t workers = 0;
    CUresult status = prepare(work, 0, &launch, &workers);
    if (status != CUDA_SUCCESS) return status;
    const uint32_t takes = work.tickets + (launch.flags & smt::kSingle ? 0 : workers);
    launched_[launch.id % launched_.size()].rest = work.done > 0;
    work.ticket = launch.start = next_ticket_;
    status = launch_workers(work, stream_, launch, workers);
    if (status != CUDA_SUCCESS) return status;
    next_ticket_ += takes;
    return CUDA_SUCCESS;
}

CUresult ManagedStream::issue(Work&& work) {
    SMT_TRY(work.function->has_door() ? issue_door(work, 0) : issue_workers(work));
    work.marker = 0;
    if (in_flight_.empty()) launch_ahead_.begin(since_ = dispatcher_.now());
    launch_ahead_.issued(work);
    if (std::optional<Work> rest = work.cut()) waiting_.push_front(std::move(*rest));
    in_flight_.push_back(std::move(work));
    ++unmarked_;
    last_issued_ = dispatcher_.now();
    const bool known = tenant_->preemptor.load(std::memory_order_relaxed) || tickets_used_up();
    const uint32_t most = in_flight_with_door() ? kDoorsBetweenMarkers : kLaunchesBetweenMarkers;
    return known || in_flight_.back().graph || unmarked_ >= most || launch_ahead_.wants_marker()
               ? mark()
               : CUDA_SUCCESS;
}

// When the GPU reaches the marker, everything before it is over.
CUresult ManagedStream::mark() {
    const CUresult status =
        dispatcher_.driver().cuStreamWriteValue64_v2(stream_, address_of(&words_->reached), marked_ + 1, 0);
    if (status != CUDA_SUCCESS) return status;
    ++marked_;
    for (auto work = in_flight_.rbegin(); work != in_flight_.rend() && work->marker == 0; ++work)
        work->marker = marked_;
    unmarked_ = 0;
    launch_ahead_.marked();
    return CUDA_SUCCESS;
}

void ManagedStream::prune() {
    const uint64_t over = reached();
    while (!unmanaged_.empty() && unmanaged_.front().marker <= over) {
        const Unmanaged& ended = unmanaged_.front();
        const schedule::TimePoint now = dispatcher_.now();
        if (ended.number) tenant_->window.give(ended.number, now - std::max(ended.issued, unmanaged_over_));
        unmanaged_over_ = now;
        unmanaged_.pop_front();
    }
    if (state_ != State::kPassThrough) return;
    auto last = in_flight_.begin();
    while (last != in_flight_.end() && last->marker && last->marker <= over) ++last;
    forget_until(last);
}

void ManagedStream::forget_until(std::deque<Work>::iterator last) {
    if (last == in_flight_.begin()) return;
    launch_ahead_.ended(in_flight_.begin(), last, dispatcher_.now());
    in_flight_.erase(in_flight_.begin(), last);
}

// Without a marker the last launches would never be known to be over, and a wait for that would not end.
void ManagedStream::mark_tail() {
    if (state_ != State::kPassThrough || !unmarked_ || dispatcher_.now() - last_issued_ < kTail) return;
    if (tenant_->preemptible.load(std::memory_order_relaxed) ||
        tenant_->preemptor.load(std::memory_order_relaxed))
        mark();
}

uint32_t ManagedStream::issued() {
    const Lock lock = spin_lock(mutex_);
    return launches_;
}

void ManagedStream::over(uint32_t issued) {
    const Lock lock = spin_lock(mutex_);
    if (state_ != State::kPassThrough) return;
    // Counts wrap at 2^32.
    forget_until(std::find_if(in_flight_.begin(), in_flight_.end(), [&](const Work& each) {
        return static_cast<int32_t>(each.launch - issued) >= 0;
    }));
    if (!in_flight_.empty()) return;
    unmarked_ = 0;
    launch_ahead_.marked();
}

void ManagedStream::forget_code() {
    const Lock lock = spin_lock(mutex_);
    // The last chance to learn from their mappings.
    if (state_ != State::kStopping && state_ != State::kRunning) take_mappings(0);
    for (Launched& each : launched_) each.function = nullptr;
    told_.clear();
    learning_ = false;
}

bool ManagedStream::poll() {
    std::lock_guard lock(mutex_);
    const bool had = under_way();
    go_on();
    mark_tail();
    if (state_ == State::kPassThrough) return had && !under_way();
    const bool ends = state_ == State::kStopping || state_ == State::kRunning;
    if (!ends || reached() < marked_ || !has_grown()) return false;
    return settle() == CUDA_SUCCESS;
}

}  // namespace smt::runtime::dispatch
