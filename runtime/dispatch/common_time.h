// How much of two kernels gets done in the time in which both are at work, from what is seen of their tickets now and then.
//
// Programs launch, wait, and launch again, and while one is away the other one is faster. So time counts from when both have been at work for
// a moment: until then workers begin, and blocks end that ran alone in part. It counts until one has no block left to take or begins another
// launch; then it begins again. Each kernel's time is that of whole rounds of its blocks, as many as all its CTAs run at once: these begin and end
// together for long, and any other time would have a round too many or too few. What is seen of tickets is some microseconds old, or a hundred: it is new
// when it has changed, so time begins and ends with changes.
//
//     at work        A  ---------------   ------------
//                    B  ------------------------------
//     counted             [=========]       [======]     from a settling time on, each kernel's whole rounds
//
// No clock, no lock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class CommonTime {
public:
    // Until so long after both are there, and each has begun a round since; a round that takes longer is not waited for.
    static constexpr schedule::Duration kSettles = std::chrono::microseconds(200);
    static constexpr schedule::Duration kSettlesAtMost = std::chrono::milliseconds(5);

    struct Seen {
        bool at_work = false;    // with all its CTAs, and with blocks left to take
        uint64_t launch = 0;
        uint64_t blocks = 0;     // of it that were taken
        uint64_t round = 1;      // blocks that run at once
    };
    void look(schedule::TimePoint now, const std::array<Seen, 2>& seen);
    void interrupt();            // somebody else is at work, or both are stopped
    void clear() { *this = {}; }

    struct Done {
        uint64_t blocks = 0;
        uint64_t rounds = 0;
        schedule::Duration time{};
    };
    std::array<Done, 2> done() const;

private:
    struct Side {
        uint64_t launch = 0;
        uint64_t before = 0;     // blocks, when both were there
        uint64_t last = 0;       // blocks, at the last look
        std::optional<schedule::TimePoint> begun;   // when they changed first once both had settled,
        uint64_t first = 0;                         // and what they were then
        Done whole;              // since then
    };
    bool settled(schedule::TimePoint now, const std::array<Seen, 2>& seen) const;

    std::optional<schedule::TimePoint> together_;   // since then
    bool settled_ = false;
    std::array<Side, 2> sides_;
    std::array<Done, 2> before_;   // of earlier times
};

}  // namespace smt::runtime::dispatch
