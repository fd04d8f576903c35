// Memory of the application that a graph copies from or to. A graph may run long after its node was
// made, so the pages are exchanged for the arena's, as registering memory does, but the application
// asked for nothing and sees nothing: no range is noted, every address stays what it was.
//
// RemappedSpan pages stay the arena's until the context is reset, or until the application has unmapped them
// and somebody looks (reclaim_remapped). What is behind an address is asked of the kernel each time, for
// the application may free its memory and map other memory there without a word.
//
// Neighbours share pages, and copies overlap: pages that are the arena's already are shown a second
// time (protocol::HostPieces), so that every copy gets one unbroken address.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace smt::interpose::driver {

// Where in the arena the device finds what the process sees at `address`. NOT_SUPPORTED: pages that
// cannot be exchanged (a stack, a shared or read-only mapping, nothing at all). May call the server.
CUresult remap(uint64_t address, uint64_t bytes, uint64_t& arena);

// The application's address for one in the arena that a graph was given; the address itself if it
// is of no remapped or registered memory.
uint64_t application_address(uint64_t arena);

// [from, to) was registered and shows the arena from `arena` on. It is registered no more, but a
// graph or another registration has the same pages.
void keep_remapped(uint64_t from, uint64_t to, uint64_t arena);

// Gives back what nothing shows any more, if enough was remapped since the last time to be worth a look.
// Calls the server; not while a capture is active, because freeing synchronises.
void reclaim_remapped();

// All pages of the arena that the application sees, remapped or registered, become its own again.
void take_pages_back();

}  // namespace smt::interpose::driver
