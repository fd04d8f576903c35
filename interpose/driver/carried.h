// Copies of graphs whose host end the device cannot reach and that cannot be remapped (remapped_pages.h): stacks,
// constants, shared mappings. Memory of the arena stands in for the application's, and a host function
// carries the bytes between the two, in order with the graph's other work: before a copy to the device,
// behind one from it.
//
// Both are one node to the application's graph, a child graph, so that the nodes it counts and depends on are
// those that it made.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/driver/copy.h"

namespace smt::interpose::driver {

// An end of a copy, packed in the arena. `carrier` is what the host function is given.
struct StandIn {
    uint64_t arena;
    void* carrier;
};

enum class Direction : uint32_t { kToArena, kFromArena };

// For `width` bytes of each row at `end`, which is normalised. The same copy gets the same one again.
// NOT_SUPPORTED: the memory cannot be read (kToArena) or written, or there are too many.
CUresult stand_in(const CopyEnd& end, uint64_t span, const Transfer& extent, Direction direction,
                  StandIn& made);

// A graph with the copy and what carries its ends; null: nothing carries that one.
CUresult make_carried(const protocol::Copy& copy, void* before, void* behind, CUgraph* graph);

// The context was reset: the arena's memory is gone.
void forget_carried();

}  // namespace smt::interpose::driver
