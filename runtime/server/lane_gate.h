// A gate in front of the records of a session's lanes. While it is closed, for one reason or several, lanes
// stand in front of it: between two records, or in a wait for another lane or for room. What their programs
// write meanwhile stays in the rings.
//
// Any thread, but pass() is a lane's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "runtime/device/device.h"
#include "runtime/server/takeover/marks.h"

namespace smt::runtime::server {

class LaneGate {
public:
    enum Reason : uint32_t {
        kSuspended = 1,    // `smt suspend` (suspension.h)
        kOutOfTurn = 2,    // its memory made room for another one (swapper.h)
        kReissued = 4,     // after a takeover: launches of before come first (takeover/reissue.cpp)
        kDescribed = 8,    // for a moment: its state is written (takeover/session_described.cpp)
        kQuarantine = 16,  // another tenant's turn (quarantine.h)
    };
    void mark(Marks* marks) { marks_ = marks; }  // a state of before does not describe one that is kept back
    void close(Reason reason);
    void open(Reason reason);
    void open_all();  // but for kDescribed, which ends by itself in a moment
    bool closed() const { return closed_.load(std::memory_order_acquire) != 0; }
    bool keeps_back() const { return (closed_.load(std::memory_order_acquire) & ~kDescribed) != 0; }
    bool closed(Reason reason) const { return (closed_.load(std::memory_order_acquire) & reason) != 0; }
    // Returns when the gate is open, or `leaves()` is true: the lane has to end or to stop elsewhere, and
    // executes nothing more.
    void pass(device::Device& device, const std::function<bool()>& leaves);
    void look();                // lanes ask leaves() again
    uint32_t standing() const;  // lanes in pass()
    bool leaving() const;       // it is open, and lanes are still in pass()

private:
    std::atomic<uint32_t> closed_{0};  // reasons
    mutable std::mutex mutex_;         // a leaf lock
    std::condition_variable changed_;
    uint32_t standing_ = 0;
    Marks* marks_ = nullptr;
};

}  // namespace smt::runtime::server
