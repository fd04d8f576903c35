// The launches of one stream that are not known to be over: those that the driver has, and those that wait.
// In the program's order: all that the driver has are before all that wait.
//
// Not thread-safe: guarded by its stream's lock.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>

#include "runtime/dispatch/launch_ahead.h"
#include "runtime/dispatch/work.h"

namespace smt::runtime::dispatch {

class LaunchQueue {
public:
    using Works = std::deque<Work>;
    using TimePoint = schedule::TimePoint;

    explicit LaunchQueue(schedule::Duration ahead) : ahead_(ahead) {}

    Works& in_flight() { return in_flight_; }  // issued, oldest first
    const Works& in_flight() const { return in_flight_; }
    Works& waiting() { return waiting_; }  // not issued, oldest first; the first may be half done
    const Works& waiting() const { return waiting_; }
    const Work* first() const {  // null: there is none
        return !in_flight_.empty() ? &in_flight_.front() : !waiting_.empty() ? &waiting_.front() : nullptr;
    }
    bool unfinished(uint64_t number) const {  // launches up to this one
        const Work* const work = first();
        return work && work->number <= number;
    }
    size_t size() const { return in_flight_.size() + waiting_.size(); }
    bool in_flight_with(Form form) const {
        return !in_flight_.empty() && in_flight_.front().function->form == form;
    }

    uint64_t next_number() { return ++numbers_; }
    uint64_t last_number() const { return numbers_; }

    // The launch-ahead limit is reached. `stops`: as LaunchAhead::full(). `now`: a function, because the time
    // is rarely needed.
    template <class Now>
    bool full(bool stops, const Now& now) {
        return ahead_.full(in_flight_, stops, now) && !ahead_.lets_go(in_flight_, now());
    }
    // A policy's launch-ahead limit; zero: the server's.
    void limit(schedule::Duration ahead) {
        limit_ = ahead;
        ahead_.limit(ahead);
    }
    schedule::Duration limit() const { return limit_; }
    bool limited() const { return ahead_.limited(); }  // to less than the server's
    schedule::Duration fed_for(TimePoint now) const { return ahead_.left(now); }
    // When what is in flight is expected to be over. Nothing: not known.
    std::optional<TimePoint> expected_end() const { return ahead_.end(in_flight_); }
    void issued(Work&& work, TimePoint now);  // what its launch does not cover waits
    // Launches behind the last marker.
    uint32_t unmarked() const { return unmarked_; }
    bool wants_marker(bool stops) const;
    bool tail(TimePoint now) const;  // no further launch follows; the last ones may have no marker
    void marked(uint64_t marker);
    // So many of the launches in flight are over, as all in front of the marker is; or as all are that were
    // issued before (Work::launch; counts wrap at 2^32).
    size_t over_at(uint64_t marker) const;
    size_t over_before(uint32_t launch) const;
    void forget(size_t count, TimePoint now);  // of those in flight, which are over
    void put_back();  // what is in flight was stopped: what is left of it waits, in front

    // What is in flight now is followed by an operation that cannot look at a control block.
    void let_pass() { unguarded_ = in_flight_.back().number; }
    const Work* last_let_pass() const;  // the last such launch in flight; null: there is none

private:
    template <class IsOver>
    size_t count_first(const IsOver& is_over) const {
        const auto end = std::find_if_not(in_flight_.begin(), in_flight_.end(), is_over);
        return static_cast<size_t>(end - in_flight_.begin());
    }

    Works in_flight_, waiting_;
    LaunchAhead ahead_;  // the cost of what is in flight
    schedule::Duration limit_{};
    uint64_t numbers_ = 0;  // of launches
    uint32_t unmarked_ = 0;
    TimePoint last_issued_{};
    uint64_t unguarded_ = 0;  // Work::number
};

}  // namespace smt::runtime::dispatch
