#include "runtime/device/cuda/launches_ahead.h"

namespace smt::runtime::device {

bool LaunchesAhead::take(CUevent* event) {
    if (free_.empty()) return real_.cuEventCreate(event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
    *event = free_.back();
    free_.pop_back();
    return true;
}

// Without an event the launch is waited for in the driver.
void LaunchesAhead::note(CUstream stream) {
    std::lock_guard lock(mutex_);
    const auto [last, first] = last_.try_emplace(stream, nullptr);
    const bool there = last->second || take(&last->second);
    if (there && real_.cuEventRecord(last->second, stream) == CUDA_SUCCESS) return;
    if (last->second) free_.push_back(last->second);
    last_.erase(last);
}

bool LaunchesAhead::ahead() {
    std::lock_guard lock(mutex_);
    if (awaited_.empty()) {
        for (const auto& [stream, event] : last_) awaited_.push_back(event);
        last_.clear();
    }
    std::erase_if(awaited_, [this](CUevent event) {
        const bool over = is_over(event);
        if (over) free_.push_back(event);
        return over;
    });
    return !awaited_.empty();
}

}  // namespace smt::runtime::device
