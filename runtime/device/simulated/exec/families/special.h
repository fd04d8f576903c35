// Special registers that change while a kernel runs, read as 64 bits.
#pragma once

#include "rewriter/ptx/names.h"
#include "runtime/device/simulated/exec/code.h"

namespace smt::runtime::device::simulated {

// Null: the register is constant for a warp and has a slot (specials.h), or is not supported.
Handler special_reader(ptx::Special special);

}  // namespace smt::runtime::device::simulated
