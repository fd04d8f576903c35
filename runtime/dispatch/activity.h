// When a session has work: its streams say when each of them begins to have some and has none left, so that
// a policy knows pauses as they were, and not as its looks found them (schedule::Activity).
//
//     first stream   ======      ====
//     second stream     =====            ====
//     the session    ========    ====    ====       a pause where no stream has work
//
// An end is seen by the thread that looks first: the program's at its next call or wait, or the dispatcher's.
//
// Any thread. begins() and ends() take a lock only behind a pause of schedule::kLeastPause or more.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class Activity {
public:
    using TimePoint = schedule::TimePoint;
    static constexpr size_t kMostPauses = 64;  // kept for the next decision; the oldest are only counted

    void begins(TimePoint now);  // a stream has work
    void ends(TimePoint now);    // and none any more
    schedule::Activity take();   // pauses since the last call
    void launch() { launches_.fetch_add(1, std::memory_order_relaxed); }
    void end_launch() { over_.fetch_add(1, std::memory_order_relaxed); }
    uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }  // so far
    uint64_t over() const { return over_.load(std::memory_order_relaxed); }          // of them

private:
    std::atomic<uint64_t> launches_{0}, over_{0};
    std::atomic<int> streams_{0};  // that have work
    // What a begin reads is that of the end before it: streams_ orders them.
    std::atomic<TimePoint> began_{}, ended_{};
    std::atomic<uint64_t> launches_then_{0}, over_then_{0};  // at that end
    std::mutex mutex_;                                       // guards the rest
    std::deque<schedule::Pause> pauses_;
    uint64_t forgotten_ = 0;
};

}  // namespace smt::runtime::dispatch
