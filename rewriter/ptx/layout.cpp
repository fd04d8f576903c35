#include "rewriter/ptx/layout.h"

#include <algorithm>

namespace smt::ptx {

uint64_t bytes_of(const Variable& variable) {
    uint64_t bytes = std::max(1, bits(variable.type) / 8);
    if (bits(variable.type) == 0) bytes = 8;  // a handle
    bytes *= static_cast<uint64_t>(variable.vector);
    for (uint64_t dimension : variable.dimensions)
        if (__builtin_mul_overflow(bytes, dimension, &bytes)) return ~uint64_t{0};
    return bytes;
}

uint32_t alignment_of(const Variable& variable) {
    const int width = bits(variable.type);
    const uint32_t own = width == 0 ? 8u : static_cast<uint32_t>(std::max(1, width / 8) * variable.vector);
    return std::max(variable.alignment, variable.alignment == 0 ? own : 1u);
}

}  // namespace smt::ptx
