// What the host and the prologue of every patched kernel share.
//
//   DoorLaunch   the last parameter of a patched kernel: 32 bytes behind the others, at a multiple of 16
//   DoorOrders   in device memory, shared by all launches of a stream
//   map          in device memory, of one launch and its resumes: one place for each CTA
//
// Each time a launch is given to the driver, first or as a resume, it has a new run number. Numbers of one
// DoorOrders only grow. A CTA is refused if its run has been stopped (stopped >= run). The host stops what is
// in flight by writing the last number that it gave out, at any time. A stop that arrives late, when its runs
// are over, does no harm to later ones.
//
//   map of a launch without clusters   a byte for each CTA: `mark` once the CTA was admitted. Anything else,
//                                      such as an earlier launch's mark, says that it was not.
//   map of a launch with clusters      a 32-bit word at the place of the cluster's first CTA:
//                                      2 * run of the decision + (1: refused, 0: admitted). Words below
//                                      2 * first_run are an earlier launch's.
//
// So a map need not be cleared before a launch, if what it holds is of the same kind and older.
//
// The index of a CTA is x + grid.x * (y + grid.y * z).
#pragma once

#include <cstdint>

namespace smt::machine_code {

struct DoorLaunch {
    uint64_t orders;     // address of DoorOrders; 0: the launch is not to be stopped, the rest is not read
    uint64_t map;        // address; a multiple of 4 with clusters
    uint32_t run;        // from 1, below 2^31
    uint32_t first_run;  // of this launch; the same as `run` if this is no resume
    uint32_t counter;    // offset from `orders` of a 32-bit counter: each refused CTA adds one
    uint32_t mark;       // 1 to 255
};
static_assert(sizeof(DoorLaunch) == 32);

struct DoorOrders {
    uint32_t stopped;  // the last run that is stopped; 0: none
    uint32_t unused[31];
    uint32_t refused[224];  // counters, for launches that are in flight at the same time
};
static_assert(sizeof(DoorOrders) == 1024);

constexpr uint64_t door_map_bytes(uint64_t ctas, bool clusters) { return ctas * (clusters ? 4 : 1); }

}  // namespace smt::machine_code
