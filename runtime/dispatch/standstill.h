// Whether a stream's launches stand still while a thread of the program waits for them. What they wait for
// may be what that thread does next: a value that it writes, or other work.
//
// In real time: a device's own clock stands, too, where nothing moves. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace smt::runtime::dispatch {

class Standstill {
public:
    using Clock = std::chrono::steady_clock;
    using Seen = std::pair<uint64_t, uint64_t>;  // a launch and its progress

    // What is seen now has been seen for so long.
    bool lasts(const Seen& seen, Clock::duration most, Clock::time_point now = Clock::now()) {
        if (seen_ != seen) seen_ = seen, since_ = now;
        return now - since_ >= most;
    }

private:
    std::optional<Seen> seen_;
    Clock::time_point since_;
};

}  // namespace smt::runtime::dispatch
