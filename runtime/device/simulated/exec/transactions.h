// What a warp's access costs the memory system, for the machine's timing.
#pragma once

#include <cstdint>

namespace smt::runtime::device::simulated {

// Distinct 32-byte sectors among the addresses of the lanes in the mask. No access crosses a sector.
uint16_t count_sectors(const uint64_t* addresses, uint32_t mask);

// Passes over the 32 banks of shared memory, each 4 bytes wide: the most different words that one
// bank must give. Accesses of 8 and 16 bytes go by half and quarter warps.
uint16_t count_passes(const uint64_t* addresses, uint32_t mask, uint32_t bytes);

// Local memory lies interleaved by words, so equal addresses of neighbouring lanes share sectors.
uint16_t count_local_sectors(const uint64_t* addresses, uint32_t mask, uint32_t bytes);

}  // namespace smt::runtime::device::simulated
