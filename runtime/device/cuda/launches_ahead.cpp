#include "runtime/device/cuda/launches_ahead.h"

#include <algorithm>
#include <thread>

namespace smt::runtime::device {

namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(1);
constexpr auto kAsksAgain = std::chrono::milliseconds(50);  // a call that waits does so before

}  // namespace

bool LaunchesAhead::take(CUevent* event) {
    if (free_.empty()) return real_.cuEventCreate(event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
    *event = free_.back();
    free_.pop_back();
    return true;
}

// Without an event the launch is waited for in the driver.
void LaunchesAhead::note(CUstream stream, const LaunchOf& launch) {
    std::lock_guard lock(mutex_);
    Last& last = last_[stream];
    last.limited |= launch.limited();
    const bool there = last.behind || take(&last.behind);
    if (there) show(stream, last.behind, launch);
    if (there && real_.cuEventRecord(last.behind, stream) == CUDA_SUCCESS) return;
    if (last.behind) free_.push_back(last.behind);
    last_.erase(stream);
    std::lock_guard shown_lock(shown_mutex_);
    shown_.erase(stream);
}

LaunchesAhead::Front LaunchesAhead::front(Call* call, Clock::duration patience) {
    std::lock_guard lock(mutex_);
    if (call->turn == 0) {
        call->turn = ++turns_;
        for (const auto& [stream, last] : last_) awaited_.push_back({last.behind, call->turn, last.limited});
        last_.clear();
    }
    std::erase_if(awaited_, [this](const Awaited& each) { return is_over(each.behind); });
    if (std::ranges::any_of(awaited_, [&](const Awaited& each) { return each.turn <= call->turn; }))
        return Front::kEarlier;
    if (any_limited()) {
        const Clock::time_point now = Clock::now();
        if (!call->behind) call->behind = now;
        if (now - *call->behind <= patience) return Front::kLater;
    }
    *call = {};
    return Front::kNone;
}

void LaunchesAhead::show(CUstream stream, CUevent behind, const LaunchOf& launch) {
    std::lock_guard lock(shown_mutex_);
    Shown& shown = shown_[stream];
    if (!shown.behind) shown.what.since = Clock::now();
    shown.behind = behind;
    shown.what.launch = launch;
}

bool LaunchesAhead::is_over(CUevent event) {
    if (real_.cuEventQuery(event) == CUDA_ERROR_NOT_READY) return false;
    free_.push_back(event);
    std::lock_guard lock(shown_mutex_);
    std::erase_if(shown_, [event](const auto& each) { return each.second.behind == event; });
    return true;
}

std::vector<WatchedLaunch> LaunchesAhead::under_way() const {
    std::lock_guard lock(shown_mutex_);
    std::vector<WatchedLaunch> all;
    for (const auto& [stream, shown] : shown_) all.push_back(shown.what);
    return all;
}

void LaunchesAhead::look() {
    std::lock_guard lock(mutex_);
    std::erase_if(last_, [this](const auto& each) { return is_over(each.second.behind); });
}

// Of the launches behind a call that none is earlier than: those of awaited_ are a later call's, and not
// over.
bool LaunchesAhead::any_limited() {
    std::erase_if(last_,
                  [this](const auto& each) { return each.second.limited && is_over(each.second.behind); });
    return std::ranges::any_of(last_, [](const auto& each) { return each.second.limited; }) ||
           std::ranges::any_of(awaited_, &Awaited::limited);
}

void LaunchesAhead::forget() {
    std::lock_guard lock(mutex_);
    for (const auto& [stream, last] : last_) free_.push_back(last.behind);
    for (const Awaited& each : awaited_) free_.push_back(each.behind);
    last_.clear();
    awaited_.clear();
    std::lock_guard shown_lock(shown_mutex_);
    shown_.clear();
}

bool LaunchesAhead::kept_back() const {
    const Clock::time_point asked{Clock::duration(asked_.load(std::memory_order_relaxed))};
    return Clock::now() - asked < kAsksAgain;
}

bool LaunchesAhead::stand_back(Clock::duration longest) const {
    if (!kept_back()) return true;
    const Guest* const guest = guest_of_thread();
    const HeldUp held_up(guest ? guest->id() : 0, "a call that waits for its kernels");
    const Clock::time_point until = Clock::now() + longest;
    while (kept_back() && Clock::now() < until) {
        if (guest && guest->leaves()) return false;
        std::this_thread::sleep_for(kLookAgain);
    }
    return true;
}

}  // namespace smt::runtime::device
