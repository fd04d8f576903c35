// Where the time of a lane's thread goes while it executes a record: in the driver's functions, and in the
// dispatcher's waits. A thread without a CallClock, which is every thread unless calls are timed, pays for
// one test of a thread-local pointer.
#pragma once

#include <array>
#include <cstdint>

#include "driver_api.gen.h"
#include "runtime/protocol/call_times.h"

namespace smt::runtime::device {

inline constexpr uint32_t kDriverFunctions = sizeof(DriverApi) / sizeof(AnyFunction);

struct CallClock {
    struct Function {
        uint64_t calls = 0, ticks = 0;
    };
    // Sums in ticks (protocol/call_times.h). A wait counts as such with the driver's calls in it, and a call
    // of the driver with the calls that it makes itself.
    uint64_t driver = 0, waits = 0;
    bool inside = false;                                    // one of the two is under way
    std::array<Function, kDriverFunctions> functions = {};  // in DriverApi's order
};

inline constinit thread_local CallClock* call_clock = nullptr;  // of this thread; null: none

class InDriver {
public:
    explicit InDriver(uint32_t function)
        : clock_(call_clock && !call_clock->inside ? call_clock : nullptr), function_(function) {
        if (!clock_) return;
        clock_->inside = true;
        begun_ = protocol::ticks();
    }
    ~InDriver() {
        if (!clock_) return;
        const uint64_t lasted = protocol::ticks() - begun_;
        clock_->inside = false;
        clock_->driver += lasted;
        ++clock_->functions[function_].calls;
        clock_->functions[function_].ticks += lasted;
    }
    InDriver(const InDriver&) = delete;
    InDriver& operator=(const InDriver&) = delete;

private:
    CallClock* const clock_;
    const uint32_t function_;
    uint64_t begun_ = 0;
};

// A wait for a policy, or for work in flight or other threads before a record can go on.
class InWait {
public:
    InWait() : clock_(call_clock && !call_clock->inside ? call_clock : nullptr) {
        if (!clock_) return;
        clock_->inside = true;
        begun_ = protocol::ticks();
    }
    ~InWait() {
        if (!clock_) return;
        clock_->waits += protocol::ticks() - begun_;
        clock_->inside = false;
    }
    InWait(const InWait&) = delete;
    InWait& operator=(const InWait&) = delete;

private:
    CallClock* const clock_;
    uint64_t begun_ = 0;
};

}  // namespace smt::runtime::device
