// What the barriers need to know of the instructions that wait at them.
#pragma once

#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {

// Writes the result of a bar.red for the threads that waited; nothing for a bar.sync.
void barrier_result(Execution& x, const Instruction& in, uint32_t votes, uint32_t voters);

// Of an instruction that a warp executes together: `value` holds it.
inline const Collective& collective_of(const Instruction& in) {
    return *reinterpret_cast<const Collective*>(in.value);
}

}  // namespace smt::runtime::device::simulated
