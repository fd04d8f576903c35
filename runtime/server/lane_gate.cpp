#include "runtime/server/lane_gate.h"

#include "runtime/dispatch/clock_handoff.h"

namespace smt::runtime::server {

void LaneGate::close(Reason reason) {
    std::lock_guard lock(mutex_);
    closed_.fetch_or(reason);
    if (marks_ && reason != kDescribed) marks_->changed();
}

void LaneGate::open(Reason reason) {
    {
        std::lock_guard lock(mutex_);
        closed_.fetch_and(~reason);
    }
    changed_.notify_all();
}

void LaneGate::open_all() {
    {
        std::lock_guard lock(mutex_);
        closed_.fetch_and(kDescribed);  // what is written goes on reading
    }
    changed_.notify_all();
}

void LaneGate::look() {
    {
        std::lock_guard lock(mutex_);
    }  // a lane between its question and its sleep sees the answer, or this
    changed_.notify_all();
}

void LaneGate::pass(device::Device& device, const std::function<bool()>& leaves) {
    const dispatch::ClockHandoff others(device);
    std::unique_lock lock(mutex_);
    ++standing_;
    changed_.wait(lock, [&] { return closed_.load() == 0 || leaves(); });
    --standing_;
}

bool LaneGate::leaving() const {
    std::lock_guard lock(mutex_);
    return closed_.load() == 0 && standing_ != 0;
}

uint32_t LaneGate::standing() const {
    std::lock_guard lock(mutex_);
    return standing_;
}

}  // namespace smt::runtime::server
