// The door's words in device memory, as the host writes them and the prologue of every patched kernel reads
// them. One control block belongs to one launch and its resumes.
//
//   control block   0: stopped   4: run   ...   128: refused   ...   4096: the map, one place for each CTA
//
// A launch is run 1, its first resume run 2, and so on. A CTA is refused if its run has been stopped
// (stopped >= run), so that a stop which arrives late, when its run is over, does no harm to the next one.
//
//   map of a launch without clusters   a byte for each CTA: 1 once it was admitted
//   map of a launch with clusters      a 32-bit word at the place of the cluster's first CTA:
//                                      0, or 2 * run of the decision + (1: refused, 0: admitted)
//
// The index of a CTA is x + grid.x * (y + grid.y * z).
#pragma once

#include <cstdint>

namespace smt::machine_code {

struct DoorWords {
    uint32_t stopped;  // the last run that is stopped; 0: none. The host writes it at any time
    uint32_t run;      // of this launch, from 1; written in the launch's stream before it
    uint32_t unused[30];
    uint32_t refused;  // CTAs, by all runs since the host wrote 0 here
    uint32_t more[31];
};
static_assert(sizeof(DoorWords) == 256);

constexpr uint64_t kDoorMapAt = 4096;

constexpr uint64_t door_bytes(uint64_t ctas, bool clusters) { return kDoorMapAt + ctas * (clusters ? 4 : 1); }

}  // namespace smt::machine_code
