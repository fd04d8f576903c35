// How far a stream runs ahead: how much managed work the driver has of it at a time, in time of the GPU.
//
// What the driver has cannot be taken back where an event or a copy stands behind it. Whoever needs the context idle, to
// load a module or to free memory, waits for all of it, and so does a more urgent tenant's first kernel: for seconds,
// behind a program that launches a hundred kernels of 20 ms and then waits for them. So the rest stays with us
// (ManagedStream::top_up()), and the program goes on launching.
//
// What launches cost is learnt by kernel, in proportion to their blocks, from when markers behind them are seen. That is
// late, or there was something else to wait for: then a launch is thought to cost too much, and less goes ahead, but
// never fewer than kAtLeast. Of a kernel of which nothing is known kUnknown fill the time. Where nothing ends for long
// what runs may wait for something that stands behind what is kept here: then one is let go each kStall.
//
// A stream's; its lock is held.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>

#include "runtime/dispatch/work.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class LaunchAhead {
public:
    using Duration = schedule::Duration;
    using Works = std::deque<Work>;
    static constexpr Duration kStall = std::chrono::milliseconds(50);
    static constexpr int kUnknown = 8;      // launches
    static constexpr int kMarkers = 8;      // in the time, so that its end is seen in steps
    static constexpr size_t kAtLeast = 2;   // launches, however long they take: the GPU has the next one when one ends

    explicit LaunchAhead(Duration time) : time_(time) {}   // zero: without end

    void begin(schedule::TimePoint now) { since_ = now; }   // the GPU had nothing of this stream to do
    void issued(Work& work);
    bool wants_marker() const { return time_ != Duration::zero() && unmarked_ * kMarkers >= time_; }
    void marked() { unmarked_ = {}; }
    // The oldest launches, [first, last), were seen to be over. They were in flight one behind the other.
    void ended(Works::iterator first, Works::iterator last, schedule::TimePoint now);
    void forget() { all_ = unmarked_ = {}; }   // nothing is in flight

    bool full(const Works& in_flight) const { return time_ != Duration::zero() && all_ >= time_ && in_flight.size() >= kAtLeast; }
    bool lets_go(const Works& in_flight, schedule::TimePoint now);   // one more, although it is full

private:
    Duration cost(const Work& work) const;

    const Duration time_;
    Duration all_{}, unmarked_{};    // cost of what is in flight; of that, behind the last marker
    schedule::TimePoint since_{};    // the oldest launch in flight began then, as far as it is known
    schedule::TimePoint let_go_{};   // last
};

}  // namespace smt::runtime::dispatch
