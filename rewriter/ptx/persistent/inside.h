// Checks inside a kernel's body, at which a stop with kInsideBit (rewriter/device/smt_worker.h) ends a block
// before its own end. What is left of the launch begins with that block anew.
//
// So a block may be left only if running it again, with those behind it, comes to the same: the kernel has no
// effects that forbid it (rewriter/ptx/effects.h), and does not write memory that it reads, as far as its
// parameters show; the rest is seen in a launch's values (Effects).
//
// A thread that leaves must not be missed by others of its block that go on. There are three kinds of checks:
//
//   alone      at the end of a loop's round, where no barrier or warp-wide operation can follow: the thread
//              leaves the block by itself. None in a kernel with such an operation for some threads only:
//              others could wait there, and it opens when this thread has exited.
//   meeting    at the end of a round of a loop without such operations: the thread goes to where all threads
//              of the block meet again behind the loop. A barrier there tells all of them whether one has
//              seen the stop; then all leave, and none has used what another one did not do.
//   barrier    a barrier of all threads in a loop: each looks for the stop in front of it, and the barrier
//              tells all of them whether one has seen it.
//
// Of loops in loops without barriers the outermost is checked. A round of few instructions is counted, and
// the stop is looked for about every kCheckEvery instructions.
#pragma once

#include <cstdint>
#include <string>

#include "rewriter/ptx/effects.h"
#include "rewriter/ptx/persistent/judge.h"

namespace smt::ptx::persistent {

inline constexpr uint64_t kCheckEvery = 2048;   // instructions of a warp, about
inline constexpr uint64_t kShortLoop = 16'384;  // a loop that is known to have no more is not checked

struct Inside {
    std::string refusal;  // why blocks are not left before their end; empty: they are
    Function function;    // with checks
    Effects effects;
};

// Of a kernel that is managed. On success `verdict` names the form that it needs.
Inside check_inside(const Function& entry, const Module& module, Verdict& verdict);

}  // namespace smt::ptx::persistent
