// A stream whose launches flow: they go to the driver one behind the other, as far ahead as it is good to (ahead.h).
#include <utility>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"

namespace smt::runtime::dispatch {

namespace {

// So many launches without a marker, and one is set: what is complete is forgotten then.
constexpr uint32_t kLaunchesBetweenMarkers = 32;
// Before the count of tickets reaches the word's high half.
constexpr uint32_t kMostTickets = 1u << 31;

}  // namespace

CUresult ManagedStream::flow() {
    std::lock_guard lock(mutex_);
    if (state_ != State::kStopped) return CUDA_SUCCESS;
    state_ = State::kFlowing;
    since_ = dispatcher_.now();
    top_up();
    if (unmarked_) mark();
    tell_changed();
    return failed_;
}

void ManagedStream::top_up() {
    if (state_ != State::kFlowing || waiting_.empty()) return;
    while (!waiting_.empty() && !too_far_ahead()) {
        Work work = std::move(waiting_.front());
        waiting_.pop_front();
        if (CUresult status = issue(std::move(work)); status != CUDA_SUCCESS && failed_ == CUDA_SUCCESS) failed_ = status;
    }
}

bool ManagedStream::too_far_ahead() {
    return ahead_.full(in_flight_) && !ahead_.lets_go(in_flight_, dispatcher_.now());
}

void ManagedStream::go_on() {
    prune();
    top_up();
}

bool ManagedStream::keeps_back() {
    std::lock_guard lock(mutex_);
    return state_ == State::kFlowing && !waiting_.empty();
}

CUresult ManagedStream::issue(Work&& work) {
    smt::Launch launch;
    uint32_t workers = 0;
    CUresult status = prepare(work, 0, &launch, &workers);
    if (status != CUDA_SUCCESS) return status;
    const uint32_t takes = work.tickets + (launch.flags & smt::kSingle ? 0 : workers);
    if (next_ticket_ > kMostTickets - takes) {   // begins again, in the stream's order
        if ((status = dispatcher_.driver().cuStreamSynchronize(stream_))) return status;
        in_flight_.clear();
        ahead_.forget();
        if ((status = control_.reset(stream_))) return status;
        next_ticket_ = 0;
        forget_sample();
    }
    launched_[launch.id % launched_.size()].rest = work.done > 0;
    work.ticket = launch.start = next_ticket_;
    status = launch_workers(work, stream_, launch, workers);
    if (status != CUDA_SUCCESS) return status;
    next_ticket_ += takes;
    work.marker = 0;
    if (in_flight_.empty()) ahead_.begin(since_ = dispatcher_.now());
    ahead_.issued(work);
    if (std::optional<Work> rest = work.cut()) waiting_.push_front(std::move(*rest));
    in_flight_.push_back(std::move(work));
    ++unmarked_;
    if (tenant_->watched.load(std::memory_order_relaxed) || unmarked_ >= kLaunchesBetweenMarkers || ahead_.wants_marker()) return mark();
    return CUDA_SUCCESS;
}

// When the GPU gets here, everything before is over.
CUresult ManagedStream::mark() {
    CUresult status = dispatcher_.driver().cuStreamWriteValue64_v2(stream_, address_of(&words_->reached), ++marked_, 0);
    for (auto work = in_flight_.rbegin(); work != in_flight_.rend() && work->marker == 0; ++work) work->marker = marked_;
    unmarked_ = 0;
    ahead_.marked();
    return status;
}

void ManagedStream::prune() {
    const uint64_t over = reached();
    while (!opaque_.empty() && opaque_.front().marker <= over) {
        const Opaque& ended = opaque_.front();
        const schedule::TimePoint now = dispatcher_.now();
        if (ended.number) tenant_->window.give(ended.number, now - std::max(ended.issued, opaque_over_));
        opaque_over_ = now;
        opaque_.pop_front();
    }
    if (state_ != State::kFlowing) return;
    auto last = in_flight_.begin();
    while (last != in_flight_.end() && last->marker && last->marker <= over) ++last;
    if (last == in_flight_.begin()) return;
    ahead_.ended(in_flight_.begin(), last, dispatcher_.now());
    in_flight_.erase(in_flight_.begin(), last);
}

bool ManagedStream::poll() {
    std::lock_guard lock(mutex_);
    const bool had = under_way();
    go_on();
    if (state_ == State::kFlowing) return had && !under_way();
    const bool ends = state_ == State::kStopping || state_ == State::kRunning;
    if (!ends || reached() < marked_ || !has_grown()) return false;
    return settle() == CUDA_SUCCESS;
}

}  // namespace smt::runtime::dispatch
