// How much device memory an array takes, by its description: what counts against the tenant's limit.
//
// Texels stand in blocks of 64 bytes by 8 rows (2 to 16 of them on top of each other in large arrays), so rows are
// rounded up. The driver does not tell the size of an array that holds memory.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace smt::runtime::server::handlers {

// Beyond what 64 bits hold: the largest number.
uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels = 1);
uint64_t array_bytes(const CUDA_ARRAY_DESCRIPTOR& shape);

}  // namespace smt::runtime::server::handlers
