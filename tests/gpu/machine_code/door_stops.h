// The time of one launch, and of stops.
#pragma once

#include "door_bench.h"

struct StopCase {
    size_t ctas;
    int iterations;  // of each CTA's work
    bool by_copy;    // or by cuStreamWriteValue32
    int stops;
};

// Launch and wait of one CTA, as the host sees it: a row.
void check_latency(CUmodule plain, CUmodule patched, const Streams& streams);

// A row of how long it takes from the order to stop until the host knows that the grid has ended: as it is;
// beyond the longest of the CTAs that were in flight when the order was given; and after the last of them.
// The grid fills the GPU, and the moments are random.
void check_stops(CUmodule plain, CUmodule patched, const Streams& streams, const StopCase& test);
