// How much of two kernels gets done in the time in which both are at work, from what is seen of their tickets now and then.
//
// Programs launch, wait, and launch again, and while one is away the other one is faster. So a stretch of time counts from when both have been at
// work for a moment: until then workers begin, and blocks end that ran alone in part. It ends when one has no block left to take or begins another
// launch; then the next one begins. Both kernels are counted over the same stretch, from its beginning to its end: one that gets nothing done in
// a part of it has got nothing done there, and what the two got done together is what the device got done.
//
//     at work        A  ---------------   ------------
//                    B  ------------------------------
//     counted             [=========]       [======]     from a settling time on
//
// A round of a kernel's blocks, as many as all its CTAs run at once, begins and ends together for long. Taken tickets alone would count a round
// too many or too few of it, wherever a stretch begins and ends. So a kernel of which a whole round was seen is credited with the part of a round that lies
// between: a round is done evenly from its beginning to the next one's, as long as a round takes in this stretch. Of a stretch shorter than a
// round tickets are counted as they are: over several stretches they are neither too many nor too few. Such a stretch is in the sums once it has
// ended: to stop as soon as there are enough would mean to stop behind the tickets of a round.
//
// What is seen of tickets is some microseconds old, or a hundred: it is new when it has changed.
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
    // Until so long after both are there. To wait for a round of each would leave out the time in which one gets nothing done.
    static constexpr schedule::Duration kSettles = std::chrono::microseconds(200);

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
        double blocks = 0, rounds = 0;   // parts of a round included
    };
    std::array<Done, 2> done() const;
    schedule::Duration time() const;     // in which both did that

private:
    struct Mark {
        schedule::TimePoint at{};
        uint64_t blocks = 0;
    };
    struct Side {
        uint64_t launch = 0, round = 1;
        uint64_t begun = 0;      // blocks, when the stretch began,
        uint64_t last = 0;       // and at the last look
        std::optional<Mark> first;           // the beginning of a round: the last one before the stretch, or the first one in it
        Mark whole;                          // the last one that lies whole rounds behind that,
        uint64_t rounds = 0;                 // so many,
        schedule::Duration longest{};        // and the longest time between two
        void follow(schedule::TimePoint now, uint64_t blocks, bool counts);
        // Blocks that were done; nothing: no whole round was seen, or the stretch is shorter.
        std::optional<double> by_rounds(schedule::TimePoint from, schedule::TimePoint until) const;
    };
    bool told() const;   // what has been done in the stretch under way, by rounds of both
    static void add(Done& to, const Side& side, double blocks);
    std::optional<schedule::TimePoint> together_, begun_;   // both are there, and counted, since then
    schedule::TimePoint last_{};                            // until then
    std::array<Side, 2> sides_;
    std::array<Done, 2> before_;                            // of earlier stretches
    schedule::Duration time_before_{};
};

}  // namespace smt::runtime::dispatch
