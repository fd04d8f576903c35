// A second core for large copies between the application's memory and staging slots: one core moves some
// 12 GB/s, the GPU 55. A thread of ours takes half of each piece.
//
// The thread starts with the first piece that is worth it, sleeps when there is nothing to do, and is never
// waited for: a half that it has not begun by the time the caller has done the other is the caller's again.
// One caller at a time has it; others copy alone, as do all where there is one processor.
#pragma once

#include <cstdint>

namespace smt::interpose::driver {

using CopyBytes = void (*)(char* to, const char* from, uint64_t count);

// copy(to, from, count), in two parts at once if that pays. Both are over when it returns. `copy` may
// run on another thread, with all signals blocked; it must do nothing but copy.
void copy_on_two_cores(CopyBytes copy, char* to, const char* from, uint64_t count);

}  // namespace smt::interpose::driver
