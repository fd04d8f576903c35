// Steps that several kinds of memory share.
#pragma once

#include <cuda.h>

#include "interpose/driver/ranges.h"
#include "runtime/protocol/record.h"

namespace smt::interpose::driver {

// Requests `bytes` from the server with kMemAlloc or kHostAlloc and adds the range.
CUresult allocate(protocol::Op op, Memory memory, uint64_t bytes, uint32_t flags, uint64_t& address);
// Frees the memory at `address` with kMemFree or kHostFree, after all submitted work.
CUresult give_back(protocol::Op op, uint64_t address);
// New pages of the arena, which the device reaches too. Freed with kHostFree.
CUresult arena_pages(uint64_t bytes, uint64_t& address);
// What the program has mapped at an address of kVirtual memory. NOT_FOUND: nothing.
CUresult find_mapping(const Range& range, uint64_t address, protocol::MemAllocated& mapping);
// Waits for everything that this process has submitted.
CUresult finish_all_work();

}  // namespace smt::interpose::driver
