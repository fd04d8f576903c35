// Whether a stream's launches go to the driver, are being stopped, wait, or run one at a time: a table.
//
//                 kStop      kRest     kOver     kResume        kRun       kHalt
//   kPassThrough  kStopping  kStopped  .         .              .          .
//   kStopping     .          .         kStopped  .              .          .
//   kStopped      .          .         .         kPassThrough   kRunning   .
//   kRunning      .          .         kStopped  .              .          kHalted
//   kHalted       .          .         kStopped  .              .          .
//
// An event has no effect where there is a dot. What it does elsewhere (ManagedStream):
//
//   kStop    a stop was written for all that is in flight, and a report and a marker follow it
//   kRest    the GPU has no work of the stream
//   kOver    the marker is reached: what was run is accounted for, the rest waits
//   kResume  launches go to the driver, back to back
//   kRun     the first launch that waits runs, perhaps with quotas: quota mode
//   kHalt    a stop was written for that run
//
// Not thread-safe: guarded by its stream's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class Preemptor {
public:
    using TimePoint = schedule::TimePoint;
    enum class State : uint8_t { kPassThrough, kStopping, kStopped, kRunning, kHalted };
    enum class Event : uint8_t { kStop, kRest, kOver, kResume, kRun, kHalt };

    explicit Preemptor(State state) : state_(state) {}

    bool in(State state) const { return state_ == state; }
    bool in_quota_mode() const { return in(State::kRunning) || in(State::kHalted); }
    bool stops() const { return in(State::kStopping) || in(State::kHalted); }  // a stop is under way
    bool takes(Event event) const { return next(event) != state_; }            // it has an effect
    void take(Event event, TimePoint now) {
        state_ = next(event);
        since_ = now;
    }
    TimePoint since() const { return since_; }  // in this state; pass-through mode: or at work
    void set_since(TimePoint now) { since_ = now; }

    // The stop that is under way or was the last one.
    struct Stop {
        uint64_t said_ns = 0;    // when it was decided
        uint32_t name = 0;       // kernel that it stops
        bool unmanaged = false;  // only unmanaged work was in flight
        bool inside = false;     // blocks at work are ended, too
    };
    void begin_stop(const Stop& stop) { stop_ = stop; }
    const Stop& stop() const { return stop_; }

    // What launches look at is as last set up once the GPU has come to this marker. A stop that is written
    // before would be lost.
    uint64_t ready() const { return ready_; }
    void set_ready(uint64_t marker) { ready_ = marker; }

private:
    State next(Event event) const {
        using enum State;
        constexpr std::array<std::array<State, 6>, 5> kNext = {{
            {kStopping, kStopped, kPassThrough, kPassThrough, kPassThrough, kPassThrough},
            {kStopping, kStopping, kStopped, kStopping, kStopping, kStopping},
            {kStopped, kStopped, kStopped, kPassThrough, kRunning, kStopped},
            {kRunning, kRunning, kStopped, kRunning, kRunning, kHalted},
            {kHalted, kHalted, kStopped, kHalted, kHalted, kHalted},
        }};
        return kNext[static_cast<size_t>(state_)][static_cast<size_t>(event)];
    }

    State state_;
    TimePoint since_{};
    Stop stop_;
    uint64_t ready_ = 0;
};

}  // namespace smt::runtime::dispatch
