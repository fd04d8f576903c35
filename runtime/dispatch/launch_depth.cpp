#include "runtime/dispatch/launch_depth.h"

#include <algorithm>

namespace smt::runtime::dispatch {

LaunchDepth::~LaunchDepth() {
    for (const Group& each : groups_) driver_.cuEventDestroy_v2(each.event);
    for (const CUevent each : spare_) driver_.cuEventDestroy_v2(each);
}

bool LaunchDepth::goes(CUstream stream) {
    if (most_ == Duration::zero()) return true;
    const std::lock_guard lock(mutex_);
    if (launched_ - marked_ >= std::max<uint64_t>(1, limit_ / kGroups)) mark(stream);
    if (deep() && look()) seen_ = {};
    if (full()) return false;
    ++launched_;
    return true;
}

bool LaunchDepth::may_go(TimePoint now, bool waits) {
    const std::lock_guard lock(mutex_);
    if (progress_ == TimePoint{}) progress_ = now;
    if (const uint64_t launches = look()) {
        if (seen_ != TimePoint{}) learn(now - seen_, launches);
        seen_ = progress_ = now;
    }
    if (now - progress_ >= kStall) unlimited_ = launched_;
    if (full() && !waits) return false;
    progress_ = {};
    ++launched_;
    return true;
}

// Behind all launches so far. Without an event the group ends later.
void LaunchDepth::mark(CUstream stream) {
    CUevent event = nullptr;
    if (!spare_.empty()) {
        event = spare_.back();
        spare_.pop_back();
    } else if (driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        return;
    }
    if (driver_.cuEventRecord(event, stream) != CUDA_SUCCESS) {
        spare_.push_back(event);
        return;
    }
    groups_.push_back({event, marked_ = launched_});
}

// An event of a lost context is over.
uint64_t LaunchDepth::look() {
    const uint64_t before = over_;
    while (!groups_.empty() && driver_.cuEventQuery(groups_.front().event) != CUDA_ERROR_NOT_READY) {
        over_ = groups_.front().end;
        spare_.push_back(groups_.front().event);
        groups_.pop_front();
    }
    return over_ - before;
}

// Launches that seem longer than they are would starve the GPU.
void LaunchDepth::learn(Duration took, uint64_t launches) {
    const Duration sample = std::max(Duration(1), took / static_cast<Duration::rep>(launches));
    each_ = each_ == Duration::zero() || sample < each_ ? sample : (3 * each_ + sample) / 4;
    limit_ = std::clamp(static_cast<uint64_t>(most_ / each_), kAtLeast, kAtMost);
}

}  // namespace smt::runtime::dispatch
