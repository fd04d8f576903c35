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
// Where the stream may be stopped, less is ahead: a stop waits for all that the driver has. Behind the launch
// that runs, the CTAs of a launch with a door leave one by one, and one that cannot be stopped any more runs
// to its end. So no launch follows where that takes kDrain or more, if the GPU has work for kFed. Where a
// launch takes longer than that by itself, the next one follows when so much of it is left.
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
    static constexpr int kMarkersFed = 4;  // likewise, within kFed
    static constexpr size_t kAtLeast = 2;  // launches of any length: the GPU has the next one when one ends
    static constexpr Duration kDrain = std::chrono::microseconds(20);
    static constexpr Duration kFed = std::chrono::microseconds(300);  // longer than between two looks
    // What a launch costs whose CTAs all leave at the door, measured on an H100 (door_check): 18 us with
    // 12,000 CTAs, 28 us with 20,000.
    static constexpr Duration kRefused = std::chrono::microseconds(3);
    static constexpr uint64_t kRefusedCtaPs = 1300;

    explicit LaunchAhead(Duration time) : server_(time), time_(time) {}  // zero: no limit
    // A policy's limit, if it is below the server's; zero: the server's. No effect where that is none.
    void limit(Duration time) { time_ = time == Duration::zero() ? server_ : std::min(time, server_); }
    bool limited() const { return time_ != server_; }

    void begin(schedule::TimePoint now) { since_ = now; }  // the GPU had no work of this stream
    void issued(Work& work);
    bool wants_marker(bool stops) const {
        if (time_ == Duration::zero()) return false;
        return unmarked_ * kMarkers >= time_ || (stops && unmarked_ * kMarkersFed >= kFed);
    }
    void marked() { unmarked_ = {}; }
    // The oldest launches, [first, last), were seen to be complete. They were in flight back to back. `more`:
    // others are kept back, so if these were all, the GPU may have had nothing to do for long.
    void ended(Works::iterator first, Works::iterator last, schedule::TimePoint now, bool more);
    void forget() { all_ = unmarked_ = drain_ = {}; }  // nothing is in flight

    // `stops`: the stream may be stopped, and that should not take long. `now`: a function, because the time
    // is rarely needed.
    template <class Now>
    bool full(const Works& in_flight, bool stops, const Now& now) const {
        if (time_ == Duration::zero() || in_flight.empty()) return false;
        if (in_flight.size() >= kAtLeast && all_ >= time_) return true;
        if (!stops || all_ < kFed) return false;
        // The next one most likely takes as long. How long that is is known roughly.
        if (in_flight.size() == 1) return drain_ >= kDrain && left(now()) >= kFed / 2 + all_ / 4;
        return drain_ - in_flight.front().drain >= kDrain;
    }
    // For how long the GPU has work, most likely; below 0: its end is overdue.
    Duration left(schedule::TimePoint now) const { return since_ + all_ - now; }
    // When what is in flight is expected to be over, from launches of known cost. Nothing: not known.
    std::optional<schedule::TimePoint> end(const Works& in_flight) const;
    // True: release one more, although the limit is reached.
    bool lets_go(const Works& in_flight, schedule::TimePoint now);

private:
    Duration cost(const Work& work) const;
    static Duration drain(const Work& work);

    const Duration server_;
    Duration time_;
    Duration all_{}, unmarked_{};   // cost of what is in flight, and of what follows the last marker
    Duration drain_{};              // of what is in flight
    schedule::TimePoint since_{};   // estimated begin of the oldest launch in flight
    schedule::TimePoint let_go_{};  // time of the last release
};

}  // namespace smt::runtime::dispatch
