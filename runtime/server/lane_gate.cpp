#include "runtime/server/lane_gate.h"

#include "runtime/dispatch/clock_handoff.h"

namespace smt::runtime::server {

void LaneGate::close() {
    std::lock_guard lock(mutex_);
    closed_.store(true);
}

void LaneGate::open() {
    {
        std::lock_guard lock(mutex_);
        closed_.store(false);
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
    changed_.wait(lock, [&] { return !closed_.load() || leaves(); });
    --standing_;
}

uint32_t LaneGate::standing() const {
    std::lock_guard lock(mutex_);
    return standing_;
}

}  // namespace smt::runtime::server
