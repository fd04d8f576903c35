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
// Pure: the same calls give the same requests. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

struct Request {
    Duration time{};  // from its first launch to the end of its last
    Duration busy{};  // of that, without pauses longer than PauseKnobs::least
    uint64_t launches = 0;
    bool cut = false;  // after PauseKnobs::longest
};

struct PauseKnobs {
    // A program that waits, computes and launches again pauses for less (policies/priority.cpp: kIdleGrace).
    Duration least = std::chrono::microseconds(200);
    double part = 0.25;  // of the request so far
    // The next token of a network comes sooner. Later, a request waits for too long to be counted.
    Duration most = std::chrono::milliseconds(2);
    Duration longest =
        std::chrono::milliseconds(200);  // so something is learnt of a program that never pauses
};

class Requests {
public:
    explicit Requests(const PauseKnobs& knobs = {}) : knobs_(knobs) {}

    // At each look: whether the session has work, and its launches so far. A request that is over now.
    std::optional<Request> note(bool works, uint64_t launches, TimePoint now);

    bool under_way() const { return state_ != State::kNone; }
    Request so_far(uint64_t launches, TimePoint now) const;  // of the one under way
    bool has_begun() const { return begun_; }                // in the last note()
    // Pauses for less than `least`, or works.
    bool at_work(TimePoint now) const {
        return state_ == State::kWorks || (state_ == State::kPauses && now - paused_ < knobs_.least);
    }
    // Until note() or at_work() says something else if nothing happens. Nothing: there is no request.
    std::optional<Duration> changes_after(TimePoint now) const;

private:
    Duration longest_pause() const;
    Request end(TimePoint now, bool cut);

    enum class State { kNone, kWorks, kPauses };
    PauseKnobs knobs_;
    State state_ = State::kNone;
    bool begun_ = false;
    TimePoint began_{}, paused_{}, looked_{};
    Duration pauses_{};                // longer than `least`
    std::optional<uint64_t> counted_;  // launches of the requests before
    uint64_t launches_ = 0;            // at the last look with work, or at the pause's begin
};

}  // namespace smt::runtime::schedule
