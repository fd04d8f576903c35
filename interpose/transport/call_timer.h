// Times the thread's CUDA calls where the server wants that (protocol/call_times.h); else each call tests one
// flag.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/protocol/call_times.h"

namespace smt::interpose {

// Whether a lane of this process has times. Set when the first one is opened.
extern constinit std::atomic<bool> times_calls;

// The call under way in this thread, as RecordStamp has it.
uint32_t call_under_way();

// In an entry point, for the call's duration. Of nested ones the outermost counts. A thread's times go to its
// lane, so a thread that never opens one is not timed.
class CallTimer {
public:
    explicit CallTimer(uint32_t call);
    ~CallTimer();
    CallTimer(const CallTimer&) = delete;
    CallTimer& operator=(const CallTimer&) = delete;

private:
    bool outermost_;
};

// A wait of the call under way. Of nested ones the outermost counts.
class TimedWait {
public:
    explicit TimedWait(uint64_t protocol::CallTimes::* what) {
        if (times_calls.load(std::memory_order_relaxed)) [[unlikely]]
            begin(what);
    }
    ~TimedWait() {
        if (what_) [[unlikely]]
            end();
    }
    TimedWait(const TimedWait&) = delete;
    TimedWait& operator=(const TimedWait&) = delete;

private:
    void begin(uint64_t protocol::CallTimes::* what);
    void end();

    uint64_t protocol::CallTimes::* what_ = nullptr;
    uint64_t begun_ = 0;
};

}  // namespace smt::interpose
