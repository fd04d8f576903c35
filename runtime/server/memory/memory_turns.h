// Which memory is on the device, where that of all programs together exceeds it (oversubscribe in
// SMT_LIMITS): a rule without a clock, a thread or a driver of its own.
//
// A program asks for room by an allocation that found none, or, if it is out, by a call. Requests are served
// in the order in which they came. For the first one programs are moved out, no more than it needs, in this
// order:
//
//   1. what is out already, as its calls wait in any case
//   2. idle ones, the longest idle first
//   3. those whose turn is over, the earliest turn first
//
// Nothing moves before those that may be moved have enough, so a program that waits takes nothing that does
// not help it. A program for which others were moved has a turn: so long that the moves take no more than a
// given part of it, by their bytes and the speed of earlier moves. So two programs that do not fit together
// take turns, and each request is served after the turns in front of it. An idle program's turn ends after
// kGrace of what the moves take: a pause shorter than that is no reason to move.
//
//     device 80, part 1/10      A 60, out and asking      B 70, in its turn until 12 s
//     at 12 s                   move 50 of B out, A in: 110 moved at 25 a second, so A's turn is 44 s
//
// A program that was moved while it was idle (a notebook between two cells) need not wait for the end of
// another one's turn, as long as moves take no more than a second part, that for calls, of all time. Time of
// moves is put by at that part, kMostCredit at most, and each move takes its own from it; a call may end a
// turn if what is put by is enough for its moves there and back again. So a call now and then comes at once,
// also several in a row, and calls that come too often come as often as the part allows: a call waits until
// enough was put by, or for the end of the other one's turn, whichever is first.
//
//     device 80, part for calls 1/3     A 40, a call every 4 s    B 70, always busy
//     a call                            30 of B out, 30 of A in, and back after A's pause: 1.8 s of moves in
//                                       5 s, of which 1.7 may be; after some forty calls each waits 0.4 s
//                                       more
//
// A turn that a call has ended goes on when the program is in again, no longer than it would have been, but
// for kLeastTurn at least, and before the next call.
//
// An allocation of a program that has its turn goes before the others' requests where it need not wait for
// another turn; else its turn would pass while it waits behind those that wait for its end. One that waits
// while its program is moved out keeps its place: the program comes in when there is room for both, and is
// not moved before the allocation was tried. So each turn gets a program further, however short it is.
//
// A program that allocates again soon after it got room by a move takes more at once, as much as it has got
// by such moves one after the other, of a program that is out in any case: 1, 1, 2, 4, 8. So many allocations
// wait for few moves, of which half at most is not needed.
//
// Not thread-safe. Times are the caller's. Bytes are of chunks, as the mover moves them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace smt::runtime::server {

class MemoryTurns {
public:
    using Clock = std::chrono::steady_clock;
    using TimePoint = Clock::time_point;
    using Duration = std::chrono::nanoseconds;
    static constexpr double kGrace = 0.5;                                   // of what a swap takes
    static constexpr Duration kLeastGrace = std::chrono::milliseconds(20);  // a program between two calls
    static constexpr Duration kMostGrace = std::chrono::seconds(1);         // "at once", for people
    static constexpr Duration kLeastTurn = std::chrono::milliseconds(50);  // so that each gets something done
    static constexpr Duration kMostTurn = std::chrono::minutes(10);        // if a speed was measured badly
    static constexpr Duration kGrowsOn = std::chrono::milliseconds(500);   // between two allocations
    static constexpr Duration kMostCredit = std::chrono::seconds(6);  // of moves, for idle programs' calls
    static constexpr double kFirstSpeed = 50e9;  // bytes a second, until a move was measured: PCIe 5

    // `part`: of a turn that the moves for it may take, above 0. `for_calls`: of all time that moves may take
    // where idle programs' calls end turns, or `part` if that is more; 0: no call ends one.
    MemoryTurns(double part, double for_calls)
        : part_(part), for_calls_(for_calls > 0 ? std::max(for_calls, part) : 0) {}

    // A program at one moment.
    struct Program {
        uint32_t id = 0;
        uint64_t here = 0;   // bytes on the device that can be moved out
        uint64_t away = 0;   // bytes in host memory
        bool out = false;    // its calls wait for its turn
        bool stays = false;  // it cannot be moved now
        bool later = false;  // out: what is free is for an allocation that takes it just now
        bool held = false;   // not out: it takes what it was given just now, and is not moved meanwhile
        bool works = false;  // out: it has something to do; else: it has something under way, or had lately
        uint64_t asks = 0;   // bytes that an allocation found no room for, and waits for; 0: none
    };
    struct Step {
        enum class What {
            kNothing,  // look again when something changes, or at `again`
            kOut,      // move so many bytes of `id` out
            kIn,       // move `id` in: there is room
            kGrant,    // the allocation of `id` may try again
            kRefuse,   // the allocation of `id` finds no room, whatever is moved
        } what = What::kNothing;
        uint32_t id = 0;
        uint64_t bytes = 0;      // kOut: at least; kRefuse: that are missing
        uint64_t ahead = 0;      // kOut: so many more, if that can be, for the allocations that come next
        uint32_t requester = 0;  // for whom
        bool last = false;       // kOut: then the requester, which is out, can come in
        uint64_t with = 0;       // kIn, and the last kOut: of its allocation, for which there is room, too
        TimePoint again = TimePoint::max();
    };
    // `free`: bytes of the device. Repeat it after each step, with what has changed.
    Step next(const std::vector<Program>& programs, uint64_t free, TimePoint now);

    // Bytes were moved, out or in, for the requester.
    void moved(uint32_t requester, uint64_t bytes, Duration took);
    // The step kIn or kGrant was carried out: the requester's turn begins, or becomes longer.
    void served(uint32_t requester, TimePoint now);

    uint64_t turns(uint32_t id) const;
    // Of a program that is out and asks: bytes for which no room can be made as things are; 0: it will come
    // in.
    uint64_t missing(uint32_t id) const;
    Duration waits(uint32_t id, TimePoint now) const;  // since it asked; zero: it does not ask
    double speed() const { return speed_; }            // bytes a second

private:
    struct Place {
        TimePoint asked{};  // {}: it does not ask
        TimePoint worked{};
        TimePoint begun{}, until{};  // of its turn
        TimePoint came{};            // in, or got room, by moves of others
        TimePoint cut{};             // its turn, by a call: it goes on when it is in again; {}: it was not
        uint64_t moved = 0;          // bytes for it, since it was served last
        uint64_t in_turn = 0;        // bytes for this turn
        uint64_t grown = 0;  // bytes for its allocations, one soon after the other, the last at `came`
        uint64_t turns = 0;
        uint64_t order = 0;     // of the request
        uint64_t missing = 0;   // when it was looked at last
        bool out = false;       // when it was looked at last
        bool was_idle = false;  // when it was moved out
    };
    struct Candidate {
        const Program* program;
        int rank;         // as in the list above
        TimePoint since;  // within the rank
        TimePoint from;   // it may be moved from then on
    };
    void follow(const std::vector<Program>& programs, TimePoint now);
    std::vector<Candidate> candidates(const std::vector<Program>& programs, const Program& requester,
                                      uint64_t needed, TimePoint now) const;
    bool may_cut(const Program& requester, uint64_t needed) const;  // other programs' turns
    bool serve(const std::vector<Program>& programs, const Program& requester, uint64_t free, TimePoint now,
               Step* step);
    bool serve(const std::vector<Program>& programs, const Program& requester, uint64_t wanted, uint64_t free,
               TimePoint now, Step* step);
    uint64_t ahead(const Program& requester, const Candidate& from, uint64_t bytes, TimePoint now) const;
    Duration takes(uint64_t bytes) const;

    const double part_, for_calls_;
    std::map<uint32_t, Place> places_;  // by id
    uint64_t orders_ = 0;
    double speed_ = kFirstSpeed;
    bool measured_ = false;
    Duration credit_ = kMostCredit;  // below zero: moves took more than their part
    TimePoint credited_{};
};

}  // namespace smt::runtime::server
