// Machine code of fenced PTX, whose kernels take blocks as large as the program's own take.
//
// A block has as many threads as its kernel's registers allow. A fence needs some, and a program that
// launches 1024 threads with 40 registers each would get an error with 74. So a kernel that lets fewer
// threads run than the own one is assembled again, with as many registers as that number of threads leaves
// it. Only such a one: to ptxas a limit is also leave to go up to it (48 became 64, and fewer blocks fit).
//
// Its managed form is held likewise. That of another kernel is not: where it does not fit, the kernel itself
// is launched.
//
// The own registers are those of the machine code beside the PTX (Order::registers). Where that says nothing,
// the program's own PTX (Order::ptx) is assembled, too; not before a kernel needs it.
#pragma once

#include <cstdint>

#include "runtime/jit/source.h"

namespace smt::runtime::jit {

// The most threads of a block that registers allow. 0 registers: nothing is known, and nothing is forbidden.
uint32_t threads_with(uint32_t registers);
// The most registers with which a block may have so many threads.
uint32_t registers_for(uint32_t threads);

// As compile_ptx(). An order that says nothing of own forms is compiled as it is, and so is what cannot be
// held to its registers.
Result compile_for_blocks(const Order& order);

}  // namespace smt::runtime::jit
