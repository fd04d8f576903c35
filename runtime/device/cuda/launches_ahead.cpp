#include "runtime/device/cuda/launches_ahead.h"

#include <algorithm>

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

bool LaunchesAhead::ahead(Turn* turn) {
    std::lock_guard lock(mutex_);
    if (*turn == 0) {
        *turn = ++turns_;
        for (const auto& [stream, event] : last_) awaited_.push_back({event, *turn});
        last_.clear();
    }
    std::erase_if(awaited_, [this](const Awaited& each) {
        const bool over = is_over(each.behind);
        if (over) free_.push_back(each.behind);
        return over;
    });
    return std::ranges::any_of(awaited_, [&](const Awaited& each) { return each.turn <= *turn; });
}

void LaunchesAhead::forget() {
    std::lock_guard lock(mutex_);
    for (const auto& [stream, event] : last_) free_.push_back(event);
    for (const Awaited& each : awaited_) free_.push_back(each.behind);
    last_.clear();
    awaited_.clear();
}

}  // namespace smt::runtime::device
