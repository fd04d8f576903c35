// Memory of the application that a graph copies from or to. A graph may run long after its node was made, so
// the pages are exchanged for the arena's, as in registering memory. Here the application made no request and
// sees no change: no range is added, and every address stays.
//
// RemappedSpan pages stay the arena's until the context is reset, or until reclaim_remapped() finds that the
// application has unmapped them. The mapping behind an address is read from the kernel each time, since the
// application may free its memory and map other memory there without notice.
//
// Neighbouring spans share pages, and copies overlap. Pages that are the arena's already are mapped a second
// time (protocol::HostPieces), so that every copy gets one contiguous address.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace smt::interpose::driver {

// The arena address at which the device finds what the process sees at `address`. NOT_SUPPORTED: the pages
// cannot be exchanged (a stack, a shared or read-only mapping, no mapping). May call the server.
CUresult remap(uint64_t address, uint64_t bytes, uint64_t& arena);

// The application's address for an arena address in a graph; the address itself if it is of no remapped or
// registered memory.
uint64_t application_address(uint64_t arena);

// Keeps [from, to), registered memory that shows the arena from `arena` on, as remapped. The registration
// ends, but a graph or another registration uses the same pages.
void keep_remapped(uint64_t from, uint64_t to, uint64_t arena);

// Frees arena pages that are mapped nowhere any more, if enough was remapped since the last call. Calls the
// server. Must not run while a capture is active, because freeing synchronises.
void reclaim_remapped();

// Makes all arena pages that the application sees, remapped or registered, its own again.
void take_pages_back();

}  // namespace smt::interpose::driver
