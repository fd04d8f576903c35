// How many launches the driver has of a stream at a time, where they go to it as they come: unmanaged ones of
// a tenant that nothing stops.
//
// The driver's queue has room for a thousand launches. A call that needs the context idle, of any program,
// waits for all of them (launch_ahead.h), and a launch that finds the queue full waits in the driver, with
// its locks. So a thread that launches waits here before, while as much is ahead as the launch-ahead limit
// allows, in GPU time, but never for fewer than kAtLeast launches.
//
// Nothing is known of single launches. They are counted, an event stands behind each group of them, and how
// long one takes is learnt from the ends of two groups that a thread has waited for: the GPU had work of this
// stream between the two. Of a stream of which nothing is known kUnknown launches go ahead. Where another
// kind of launch follows, so many of the old kind's number may be ahead once.
//
// A thread that waits here keeps its launches on other streams waiting, too. So this is for one that launches
// on a single stream (Lane::keeps_to()).
//
// A stream without progress for kStall may wait for what the thread does next. Then what is there is waited
// for by no launch any more.
//
// Thread-safe. Holds no lock in a rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class LaunchDepth {
public:
    using Duration = schedule::Duration;
    using TimePoint = schedule::TimePoint;
    static constexpr uint64_t kAtLeast = 2;  // the GPU has the next one when one ends
    static constexpr uint64_t kUnknown = 64;
    static constexpr uint64_t kAtMost = 512;  // well below the driver's queue
    static constexpr uint64_t kGroups = 8;    // within the limit: its end is seen in steps
    static constexpr Duration kStall = std::chrono::seconds(1);

    // `most`: the launch-ahead limit; zero: none.
    LaunchDepth(const DriverApi& driver, Duration most) : driver_(driver), most_(most) {}
    ~LaunchDepth();
    LaunchDepth(const LaunchDepth&) = delete;
    LaunchDepth& operator=(const LaunchDepth&) = delete;

    // Before a launch on `stream`. False: the limit is reached; may_go() is asked until it is true.
    bool goes(CUstream stream);
    // `waits`: nothing of it runs, as the stream is behind a wait, or there is another reason to wait no
    // more.
    bool may_go(TimePoint now, bool waits);

private:
    struct Group {
        CUevent event;
        uint64_t end;  // launches up to its event, over all
    };
    bool deep() const { return launched_ - over_ >= limit_ && !groups_.empty(); }
    bool full() const { return deep() && over_ >= unlimited_; }
    void mark(CUstream stream);
    uint64_t look();  // launches that are over and were not at the last look
    void learn(Duration took, uint64_t launches);

    const DriverApi& driver_;
    const Duration most_;
    std::mutex mutex_;  // guards what follows
    std::deque<Group> groups_;
    std::vector<CUevent> spare_;
    uint64_t launched_ = 0, marked_ = 0, over_ = 0;
    uint64_t limit_ = kUnknown;
    uint64_t unlimited_ = 0;  // no launch waits while fewer are over
    Duration each_{};         // of a launch; zero: not known
    TimePoint seen_{};        // the last group's end, if it was waited for; else zero
    TimePoint progress_{};    // or the begin of the wait; zero: no launch waits
};

}  // namespace smt::runtime::dispatch
