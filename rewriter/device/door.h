// What the host and the prologue of every patched kernel share.
//
// A launch with the door runs units in the order of their index: clusters if it is launched in clusters, else
// CTAs. The frontier is one word of a run of the launch. Units below it are admitted, and once a run is
// stopped none beyond it is. So what has run after a stop is exactly the units below the frontier, and a unit
// that waits for an earlier one does not wait in vain.
//
//   unit < from or unit >= to     it leaves at once
//   unit < frontier               it is admitted
//   the frontier is final         it leaves
//   stopped >= run                it makes the frontier final, and is judged by that
//   else                          it moves the frontier beyond itself, unless that was final
//
// The frontier moves in steps of units. The first unit of a step moves it two steps on, so that most units
// only read it. After a stop at most so many more begin. Where units take long, that is a unit's time more.
// So an exact run has steps for its early units alone. Each later one beyond the frontier asks, and moves the
// frontier beyond itself, or beyond the units of its group where units wait for each other in groups.
//
// To find a frontier at 0 takes the first units of a run a while: they ask for the stop, and move the
// frontier. So the last unit of a run, if it is admitted, decides on the begin of the next run, while its own
// kernel runs: the next run's early units are admitted, or, where it saw a stop, that one's frontier is
// final. Early units then read one word. What takes that frontier has to be the next run in the stream's
// order, and its early units brief. Any other run takes a frontier further on.
//
// Each time a launch is given to the driver, first or as a resume, it is a run with a new number and a new
// frontier. Run numbers of one stop word only grow. The host stops what is in flight by writing the last
// number that it gave out, at any time. A stop that arrives late, when its runs are over, does no harm.
//
// The index of a unit is x + count.x * (y + count.y * z).
#pragma once

#include <cstdint>

namespace smt {

// The last parameter of a patched kernel, behind the others at a multiple of 16. Of a launch that is not to
// be stopped `stopped` and `run` are 0, and the rest is not read.
struct DoorStep {
    uint8_t shift;   // a step is 2^shift units
    uint8_t how;     // kDoorDecides, kDoorExact, from bit kDoorGroupAt on the last unit of a group
    uint16_t early;  // units, from the first one on
};
constexpr uint8_t kDoorDecides = 1;  // the last unit decides on the run whose frontier is the next word
constexpr uint8_t kDoorExact = 2;
constexpr int kDoorGroupAt = 2;  // of an exact run, in groups of 1, 2, 4 ... units: the last is 0, 1, 3 ...
struct DoorLaunch {
    uint64_t stopped;   // address of a word: the last run that is stopped
    uint64_t frontier;  // address of a word that is 0 when the run begins, or decided on
    uint32_t run;       // from 1
    uint32_t from, to;  // units that the run is for
    DoorStep step;
};
static_assert(sizeof(DoorLaunch) == 32);

constexpr uint32_t kFinalFrontier = 1u << 31;  // in the word, beside the unit
constexpr uint32_t kBegunFrontier = 1u << 30;  // likewise: early units are admitted
constexpr uint64_t kMostDoorUnits = 1u << 29;

// How many units are admitted, by the word of a run that was stopped: all before this one.
constexpr uint32_t door_reached(uint32_t word, uint32_t from, uint32_t early) {
    const uint32_t begun = word & kBegunFrontier ? from + early : 0;
    const uint32_t limit = word & (kBegunFrontier - 1);
    return limit > begun ? limit : begun;
}

}  // namespace smt
