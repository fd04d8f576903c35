// Recorded kernels on one multiprocessor of the simulated machine, for ever: what it issues, alone and beside
// another.
#pragma once

#include <array>

#include "runtime/device/simulated/machine/instruction_stream.h"

namespace smt::tests {

struct Resident {
    const runtime::device::simulated::InstructionStream* stream = nullptr;  // null: nothing
    int blocks = 0;
};

// Instructions a cycle of each, from the end of the first cycles to the end of all. All the blocks have to
// fit. They come by turns: the machine issues its oldest warps first, and where blocks come and go both
// kernels have old ones.
std::array<double, 2> replay(const Resident& one, const Resident& other, uint64_t first, uint64_t all);

}  // namespace smt::tests
