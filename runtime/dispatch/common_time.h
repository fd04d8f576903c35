// CommonTime: how much two kernels get done in the time in which both are at work, from samples of their
// ticket counts.
//
// A stretch of time counts from kSettles after both kernels are at work; until then workers begin, and blocks
// end that ran partly alone. A stretch ends when one kernel has no block left to take or begins another
// launch. Then the next stretch begins. Both kernels are counted over the same stretch, from its beginning to
// its end. A kernel that gets nothing done in a part of a stretch is counted with that time, so the sum of
// both is what the device got done.
//
//     at work        A  ---------------   ------------
//                    B  ------------------------------
//     counted             [=========]       [======]     from a settling time on
//
// A round of a kernel is as many blocks as all its CTAs run at once. Blocks of a round begin and end together
// for a long time, so a count of taken tickets is up to a round too large or too small at either end of a
// stretch. A kernel of which a whole round was seen is therefore credited with a fraction of a round: a round
// proceeds evenly from its beginning to the beginning of the next, and takes as long as rounds take in this
// stretch. In a stretch shorter than a round, tickets are counted as they are; over several stretches the
// error averages out. Such a stretch enters the sums only when it has ended, because a stop at the first
// sufficient count would always come just after the tickets of a round.
//
// A sample of the tickets is a few to a hundred microseconds old. It is new when it has changed.
//
// No clock of its own, no lock: the caller serializes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class CommonTime {
public:
    // Settling time after both are at work. To wait for a round of each would exclude time in which one gets
    // nothing done.
    static constexpr schedule::Duration kSettles = std::chrono::microseconds(200);

    struct Seen {
        bool at_work = false;  // all its CTAs have a place, and blocks are left to take
        uint64_t launch = 0;
        uint64_t blocks = 0;  // taken, of this launch
        uint64_t round = 1;   // blocks that run at once
    };
    void look(schedule::TimePoint now, const std::array<Seen, 2>& seen);
    void interrupt();  // another stream is at work, or both kernels are stopped
    void clear() { *this = {}; }

    struct Done {
        double blocks = 0, rounds = 0;  // fractions of a round included
    };
    std::array<Done, 2> done() const;
    schedule::Duration time() const;  // in which both did that

private:
    struct Mark {
        schedule::TimePoint at{};
        uint64_t blocks = 0;
    };
    struct Side {
        uint64_t launch = 0, round = 1;
        uint64_t begun = 0;  // blocks at the beginning of the stretch
        uint64_t last = 0;   // blocks at the last look
        // Beginning of a round: the last one before the stretch, or the first in it.
        std::optional<Mark> first;
        Mark whole;                    // the last mark a whole number of rounds after `first`
        uint64_t rounds = 0;           // that number
        schedule::Duration longest{};  // longest time between two such marks
        void follow(schedule::TimePoint now, uint64_t blocks, bool counts);
        // Blocks done, by linear interpolation. Empty: no whole round was seen, or the stretch is shorter
        // than a round.
        std::optional<double> by_rounds(schedule::TimePoint from, schedule::TimePoint until) const;
    };
    bool told() const;  // by_rounds() has a value for both kernels in the current stretch
    static void add(Done& to, const Side& side, double blocks);
    std::optional<schedule::TimePoint> together_, begun_;  // when both were at work, and when counting began
    schedule::TimePoint last_{};                           // last look of the stretch
    std::array<Side, 2> sides_;
    std::array<Done, 2> before_;  // of earlier stretches
    schedule::Duration time_before_{};
};

}  // namespace smt::runtime::dispatch
