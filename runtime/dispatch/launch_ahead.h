// Launch-ahead limit of a stream: how much managed work the driver has of it at a time, in GPU time.
//
// Work in the driver's queue cannot be taken back if an event or a copy follows it. A call that needs the
// context idle (to load a module, to free memory) waits for all of it, and so does the first kernel of a more
// urgent tenant: for seconds behind a program that launches a hundred kernels of 20 ms and then synchronizes.
// So launches beyond the limit are kept by the server (ManagedStream::top_up()), and the program goes on
// launching.
//
// The cost of a launch is learnt by kernel and shape of launch, from the times at which markers behind
// launches are seen. A marker may be seen late, or the stream may have waited for something else. The
// cost is then overestimated, and less is launched ahead, but never fewer than kAtLeast launches. Of launches
// of unknown cost kUnknown fill the limit. If no launch ends for long, the running launch may wait
// for something that follows a launch kept here. Then one more launch is released each time that kStall plus
// four times the cost of the oldest launch has passed.
//
// Not thread-safe: guarded by its stream's lock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>

#include "runtime/dispatch/work.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class LaunchAhead {
public:
    using Duration = schedule::Duration;
    using Works = std::deque<Work>;
    static constexpr Duration kStall = std::chrono::milliseconds(50);
    static constexpr int kUnknown = 8;     // launches of unknown cost that fill the limit
    static constexpr int kMarkers = 8;     // markers within the limit: its end is seen in steps
    static constexpr size_t kAtLeast = 2;  // launches of any length: the GPU has the next one when one ends

    explicit LaunchAhead(Duration time) : server_(time), time_(time) {}  // zero: no limit
    // A policy's limit, if it is below the server's; zero: the server's. No effect where that is none.
    void limit(Duration time) { time_ = time == Duration::zero() ? server_ : std::min(time, server_); }
    bool limited() const { return time_ != server_; }

    void begin(schedule::TimePoint now) { since_ = now; }  // the GPU had no work of this stream
    void issued(Work& work);
    bool wants_marker() const { return time_ != Duration::zero() && unmarked_ * kMarkers >= time_; }
    void marked() { unmarked_ = {}; }
    // The oldest launches, [first, last), were seen to be complete. They were in flight back to back.
    void ended(Works::iterator first, Works::iterator last, schedule::TimePoint now);
    void forget() { all_ = unmarked_ = {}; }  // nothing is in flight

    bool full(const Works& in_flight) const {
        return time_ != Duration::zero() && all_ >= time_ && in_flight.size() >= kAtLeast;
    }
    // When what is in flight is expected to be over, from launches of known cost. Nothing: not known.
    std::optional<schedule::TimePoint> end(const Works& in_flight) const;
    // True: release one more, although the limit is reached.
    bool lets_go(const Works& in_flight, schedule::TimePoint now);

private:
    Duration cost(const Work& work) const;

    const Duration server_;
    Duration time_;
    Duration all_{}, unmarked_{};   // cost of what is in flight, and of what follows the last marker
    schedule::TimePoint since_{};   // estimated begin of the oldest launch in flight
    schedule::TimePoint let_go_{};  // time of the last release
};

}  // namespace smt::runtime::dispatch
