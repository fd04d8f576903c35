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
// only read it. After a stop at most so many more begin.
//
// To find a frontier at 0 takes the first units of a run a while: they ask for the stop, and move the
// frontier. Brief runs would be longer by that. So a brief run is one step, admitted or refused as a whole,
// and its first unit decides on the next run as well, while its own kernel runs: it moves that one's frontier
// beyond all units, or makes it final where it saw a stop. The next run then reads one word. That may be a
// run that is brief, too, and behind it in the stream's order; any other takes a frontier further on.
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
    uint8_t next;    // 1: a step is all of the run, and its first unit decides on the next one
    uint16_t early;  // so many units ask for the stop at once: before they run the frontier is hardly moved
};
struct DoorLaunch {
    uint64_t stopped;   // address of a word: the last run that is stopped
    uint64_t frontier;  // address of a word that is 0 when the run begins, or decided on
    uint32_t run;       // from 1
    uint32_t from, to;  // units that the run is for
    DoorStep step;
};
static_assert(sizeof(DoorLaunch) == 32);

constexpr uint32_t kFinalFrontier = 1u << 31;        // in the word, beside the unit
constexpr uint32_t kWholeFrontier = (1u << 31) - 1;  // beyond all units
constexpr uint64_t kMostDoorUnits = 1u << 30;

}  // namespace smt
