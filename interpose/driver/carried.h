// Graph copies with a host end that the device cannot reach and that cannot be remapped (remapped_pages.h):
// stacks, constants, shared mappings. Arena memory stands in for the application's, and a host function
// copies the bytes between the two in order with the graph's other work: before a copy to the device, after
// one from it.
//
// The copy and its host functions are one node of the application's graph, a child graph, so that the nodes
// that the application counts and depends on are those that it made.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/driver/copy.h"

namespace smt::interpose::driver {

// An end of a copy, packed in the arena. `carrier` is the host function's argument.
struct StandIn {
    uint64_t arena;
    void* carrier;
};

enum class Direction : uint32_t { kToArena, kFromArena };

// The stand-in for `width` bytes of each row at `end`, which is normalised. The same copy gets the same
// stand-in again. NOT_SUPPORTED: the memory cannot be read (kToArena) or written, or there are too many
// stand-ins.
CUresult stand_in(const CopyEnd& end, uint64_t span, const Transfer& extent, Direction direction,
                  StandIn& made);

// A graph of the copy and the host functions at its ends; a null argument: no host function at that end.
CUresult make_carried(const protocol::Copy& copy, void* before, void* behind, CUgraph* graph);

// Forgets the stand-ins of this_session(); called on a context reset, which frees the arena memory.
void forget_carried();

}  // namespace smt::interpose::driver
