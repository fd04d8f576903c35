#include "runtime/dispatch/unmanaged.h"

#include <algorithm>
#include <utility>

#include "runtime/dispatch/managed_stream.h"

namespace smt::runtime::dispatch {

UnmanagedWindow::Number UnmanagedWindow::take(uint64_t stream, uint64_t key, schedule::Duration timeout) {
    std::unique_lock lock(mutex_);
    Number number = 0;
    given_.wait_for(lock, timeout,
                    [&] { return (number = try_take(stream, key, schedule::Clock::now())) != 0; });
    return number;
}

UnmanagedWindow::Number UnmanagedWindow::take_now(uint64_t stream, uint64_t key, schedule::TimePoint now) {
    std::lock_guard lock(mutex_);
    return try_take(stream, key, now);
}

UnmanagedWindow::Number UnmanagedWindow::try_take(uint64_t stream, uint64_t key, schedule::TimePoint now) {
    auto known = known_.find(key);
    const schedule::Duration expected = known == known_.end() ? kTime : known->second;
    schedule::Duration all = expected;
    size_t counted = 0;
    bool first = true;
    for (const Flight& each : flights_) {
        if (now - each.issued > kStall) continue;
        ++counted;
        all += each.expected;
        first = first && each.stream != stream;
    }
    if (!first && counted >= kAtLeast && (all > kTime || counted >= kAtMost)) return 0;
    flights_.push_back({++last_, stream, key, now, expected});
    return last_;
}

// The new estimate is half of the old one and half of what was seen, because an end may be seen late.
void UnmanagedWindow::give(Number number, schedule::Duration took) {
    {
        std::lock_guard lock(mutex_);
        auto flight =
            std::ranges::find_if(flights_, [&](const Flight& each) { return each.number == number; });
        if (flight == flights_.end()) return;
        if (took > schedule::Duration::zero()) {
            if (known_.size() >= kMostKnown) known_.clear();  // keys of graphs that are gone, mostly
            schedule::Duration& known = known_.try_emplace(flight->key, took).first->second;
            known = (known + took) / 2;
        }
        flights_.erase(flight);
    }
    given_.notify_all();
}

schedule::Duration UnmanagedWindow::expected(uint64_t key) {
    std::lock_guard lock(mutex_);
    auto known = known_.find(key);
    return known == known_.end() ? schedule::Duration::zero() : known->second;
}

void UnmanagedSide::over(uint64_t marker, UnmanagedWindow& window, schedule::TimePoint now) {
    while (!in_flight.empty() && in_flight.front().marker <= marker) {
        const Flight& each = in_flight.front();
        if (each.number) window.give(each.number, now - std::max(each.issued, ended));
        ended = now;
        in_flight.pop_front();
    }
}

CUresult UnmanagedPass::launched() {
    ManagedStream* stream = std::exchange(stream_, nullptr);
    return stream ? stream->entered(*this) : CUDA_SUCCESS;
}

CUresult UnmanagedPass::stay(CUresult why) {
    if (!std::exchange(away_, nullptr) || !stream_) return CUDA_SUCCESS;
    return stream_->stays(launch_, why);
}

void UnmanagedPass::drop() {
    if (ManagedStream* stream = std::exchange(stream_, nullptr)) stream->withdrawn(number_);
}

}  // namespace smt::runtime::dispatch
