// The device memory of an array by its descriptor, in bytes. It counts against the tenant's limit.
//
// Texels are stored in blocks of 64 bytes by 8 rows (2 to 16 blocks stacked in large arrays), so rows are
// rounded up. The driver does not report the size of an array that has its own memory.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

namespace smt::runtime::server {

// What a copy addresses an array by: elements of `bytes`, each of side x side texels (1, or 4 of
// block-compressed formats). Width and height in elements are rounded up. nullopt: a format that is unknown
// here.
struct Element {
    uint64_t bytes;
    uint64_t side;
};
std::optional<Element> element_of(CUarray_format format, unsigned channels);

// Saturates at the largest 64-bit number.
uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels = 1);
uint64_t array_bytes(const CUDA_ARRAY_DESCRIPTOR& shape);

}  // namespace smt::runtime::server
