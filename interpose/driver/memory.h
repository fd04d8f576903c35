// Steps that several kinds of memory share.
#pragma once

#include <cuda.h>

#include "interpose/driver/ranges.h"
#include "runtime/protocol/record.h"

namespace smt::interpose::driver {

// Asks the server for `bytes` with kMemAlloc or kHostAlloc and notes the range.
CUresult allocate(protocol::Op op, Memory memory, uint64_t bytes, uint32_t flags, uint64_t& address);
// Gives back what lies at `address` with kMemFree or kHostFree, after all work that was submitted.
CUresult give_back(protocol::Op op, uint64_t address);
// Fresh pages of the arena, which the device reaches as well. Given back with kHostFree.
CUresult arena_pages(uint64_t bytes, uint64_t& address);
// Waits for everything this process has submitted.
CUresult finish_all_work();

}  // namespace smt::interpose::driver
