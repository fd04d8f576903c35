// A gate in front of the records of a session's lanes. While it is closed, lanes stand in front of it:
// between two records, or in a wait for another lane. What their programs write meanwhile stays in the rings.
//
// Any thread, but pass() is a lane's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "runtime/device/device.h"

namespace smt::runtime::server {

class LaneGate {
public:
    void close();
    void open();
    bool closed() const { return closed_.load(std::memory_order_acquire); }
    // Returns when the gate is open, or `leaves()` is true: the lane has to end or to stop elsewhere, and
    // executes nothing more.
    void pass(device::Device& device, const std::function<bool()>& leaves);
    void look();                // lanes ask leaves() again
    uint32_t standing() const;  // lanes in pass()

private:
    std::atomic<bool> closed_{false};
    mutable std::mutex mutex_;  // a leaf lock
    std::condition_variable changed_;
    uint32_t standing_ = 0;
};

}  // namespace smt::runtime::server
