// The requests of a service, as a server sees them: bursts of launches.
//
// A request begins with the first launch after a pause, and is over when all streams of the session have been
// without work for a pause. Within a request a program pauses, too: it computes between two launches, or
// waits for a token before it computes the next one. So a pause ends a request if it is longer than `least`
// and than a part of the request so far, and in any case if it is longer than `most`. A program that does not
// pause is cut after `longest`.
//
// Requests that follow each other closely come out as one with twice the launches. Two times are told of
// each:
//
//     launches  1 2 3   4 5 6          1 2 3                  |: pause of more than `least`
//     work      =======|======.......  =======.......         request 1: 6 launches, time 15, busy 14
//
// Pauses are those that the streams saw (snapshot.h: Activity), not times between two looks, so requests are
// the same however rarely a thread looks. A request between two looks is told, too, as one that was not seen.
// Where so many pauses come between two looks that some are only counted, the requests up to the first pause
// that is known are not told.
//
// Pure: the same calls give the same requests. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

struct Request {
    Duration time{};  // from its first launch to the end of its last
    Duration busy{};  // of that, without pauses longer than PauseKnobs::least
    uint64_t launches = 0;
    bool cut = false;  // after PauseKnobs::longest
    bool seen = true;  // at least one look was made while it was under way
};

struct PauseKnobs {
    Duration least = kLeastPause;  // not less than what snapshots tell of
    double part = 0.25;            // of the request so far
    // The next token of a network comes sooner. Later, a request waits for too long to be counted.
    Duration most = std::chrono::milliseconds(2);
    Duration longest =
        std::chrono::milliseconds(200);  // so something is learnt of a program that never pauses
};

class Requests {
public:
    explicit Requests(const PauseKnobs& knobs = {}) : knobs_(knobs) {}

    // At each look. Requests that are over now, oldest first; one at most was seen.
    std::vector<Request> note(const Service& service, TimePoint now);

    bool under_way() const { return state_ != State::kNone; }
    Request so_far(uint64_t launches, TimePoint now) const;  // of the one under way
    bool has_begun() const { return unseen_; }               // in the last note(), and is under way
    TimePoint began() const { return began_; }               // the last one
    uint64_t over_before() const { return over_before_; }    // launches that were over then
    // Pauses for less than `least`, or works.
    bool at_work(TimePoint now) const {
        return state_ == State::kWorks || (state_ == State::kPauses && now - paused_ < knobs_.least);
    }
    // Until note() or at_work() says something else if nothing happens. Nothing: there is no request.
    std::optional<Duration> changes_after(TimePoint now) const;

private:
    void replay(const Service& service, std::vector<Request>& over);
    void forget_until(const Pause& pause);
    void begin(TimePoint at, uint64_t over);
    void rest(TimePoint at, uint64_t launches);
    void go_on(const Pause& pause, std::vector<Request>& over);
    Duration longest_pause() const;
    Request end(TimePoint at, bool cut);

    enum class State { kNone, kWorks, kPauses };
    PauseKnobs knobs_;
    State state_ = State::kNone;
    bool unseen_ = false;  // the request under way has begun since the last look
    TimePoint began_{}, paused_{};
    TimePoint last_{};                 // the last begin or end of work that was replayed
    Duration pauses_{};                // longer than `least`
    std::optional<uint64_t> counted_;  // launches of the requests before
    uint64_t launches_ = 0;            // at the pause's begin
    uint64_t over_before_ = 0;
};

}  // namespace smt::runtime::schedule
