// A second core for large copies between the application's memory and staging slots. Measured: one core
// copies about 12 GB/s, the GPU 55. A thread of libsmt.so takes half of each piece.
//
// The thread starts with the first piece of sufficient size, sleeps when idle, and is never waited for before
// it begins: if it has not begun its half when the caller has done the other, the caller takes that half
// back. One caller at a time uses the thread. Other callers copy alone, as do all on a machine with one
// processor.
#pragma once

#include <cstdint>

namespace smt::interpose::driver {

using CopyBytes = void (*)(char* to, const char* from, uint64_t count);

// copy(to, from, count), in two concurrent parts if the size pays for it. Both are complete on return. `copy`
// may run on another thread, with all signals blocked, and must do nothing but copy.
void copy_on_two_cores(CopyBytes copy, char* to, const char* from, uint64_t count);

}  // namespace smt::interpose::driver
