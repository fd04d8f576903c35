// Size expressions for lines of the table. Both halves of a generated call evaluate them.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace smt::protocol {

// The product, or ~0 on overflow.
constexpr uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? ~0ull : product;
}

// Bytes from the start of the first row to the end of the last one; ~0 on overflow. Overlapping rows (pitch <
// width) give ~0 too, since their span would be small for any number of rows.
constexpr uint64_t rows(uint64_t pitch, uint64_t width, uint64_t height) {
    uint64_t end = 0;
    if (width == 0 || height == 0) return 0;
    if (height > 1 && pitch < width) return ~0ull;
    return __builtin_add_overflow(times(pitch, height - 1), width, &end) ? ~0ull : end;
}

// The size of the value behind the void pointer of a pool attribute.
constexpr uint64_t pool_value_bytes(CUmemPool_attribute attribute) {
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            return sizeof(int);
        default:
            return sizeof(cuuint64_t);
    }
}

}  // namespace smt::protocol
