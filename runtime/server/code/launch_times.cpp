// See launch_times.h.
#include "runtime/server/code/launch_times.h"

#include <cstdlib>
#include <cstring>

#include "runtime/settings/read.h"

namespace smt::runtime::server {

namespace {

constexpr uint64_t kAnchorLife = 2'000'000'000;  // ns; a float of 2000 ms is exact to 0.12 us
constexpr int kLookedAt = 4;                     // pending launches queried at each launch

uint64_t nanoseconds(float milliseconds) {
    return milliseconds > 0 ? static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6) : 0;
}

}  // namespace

bool LaunchTimes::wanted() {
    static const bool answer = settings::flag_of(settings::Id::kJournalTimes);
    return answer;
}

CUevent LaunchTimes::before(CUstream stream) {
    std::lock_guard lock(mutex_);
    if ((!anchor_ || journal::now_ns() - anchor_->time_ns > kAnchorLife) && !renew_anchor()) return nullptr;
    CUevent start = take_event();
    if (start && driver_.cuEventRecord(start, stream) != CUDA_SUCCESS) {
        idle_.push_back(start);
        return nullptr;
    }
    return start;
}

void LaunchTimes::after(CUevent start, CUstream stream, journal::Writer& journal, uint64_t sequence) {
    std::lock_guard lock(mutex_);
    CUevent end = take_event();
    if (!end || driver_.cuEventRecord(end, stream) != CUDA_SUCCESS) {
        if (end) idle_.push_back(end);
        idle_.push_back(start);
        return;
    }
    pending_.push_back({start, end, anchor_, &journal, sequence});
    collect(false);
}

void LaunchTimes::clear() {
    std::lock_guard lock(mutex_);
    collect(true);
    for (CUevent event : idle_) driver_.cuEventDestroy_v2(event);
    idle_.clear();
    anchor_.reset();
    if (stream_) driver_.cuStreamDestroy_v2(stream_);
    stream_ = nullptr;
}

// No other work runs on the anchor's stream, so the event completes at once and the current time is its time.
bool LaunchTimes::renew_anchor() {
    if (!stream_ && driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return false;
    CUevent event = nullptr;
    if (driver_.cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
    auto anchor = std::shared_ptr<Anchor>(new Anchor{driver_, event, 0});
    if (driver_.cuEventRecord(event, stream_) != CUDA_SUCCESS) return false;
    if (driver_.cuEventSynchronize(event) != CUDA_SUCCESS) return false;
    anchor->time_ns = journal::now_ns();
    anchor_ = std::move(anchor);
    return true;
}

CUevent LaunchTimes::take_event() {
    CUevent event = nullptr;
    if (idle_.empty())
        return driver_.cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS ? event : nullptr;
    event = idle_.back();
    idle_.pop_back();
    return event;
}

// Streams complete in any order: the front launches are queried, and one that has not completed goes to the
// back.
void LaunchTimes::collect(bool wait) {
    for (int looked = 0; !pending_.empty() && (wait || looked < kLookedAt); ++looked) {
        Pending first = std::move(pending_.front());
        pending_.pop_front();
        CUresult status = wait ? driver_.cuEventSynchronize(first.end) : driver_.cuEventQuery(first.end);
        if (status == CUDA_ERROR_NOT_READY) {
            pending_.push_back(std::move(first));
            continue;
        }
        if (status == CUDA_SUCCESS) settle(first);
        idle_.push_back(first.start);
        idle_.push_back(first.end);
    }
}

void LaunchTimes::settle(const Pending& pending) {
    float start = 0, length = 0;
    if (driver_.cuEventElapsedTime_v2(&start, pending.anchor->event, pending.start) != CUDA_SUCCESS) return;
    if (driver_.cuEventElapsedTime_v2(&length, pending.start, pending.end) != CUDA_SUCCESS) return;
    uint64_t start_ns = pending.anchor->time_ns + nanoseconds(start);
    pending.journal->set_times(pending.sequence, start_ns, start_ns + nanoseconds(length));
}

}  // namespace smt::runtime::server
