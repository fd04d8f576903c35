// Unsupported forms of supported entry points.
#pragma once

#include <cstdint>
#include <string_view>

#include "coverage.gen.h"
#include "interpose/driver/coverage.h"

namespace smt::interpose {

// Counts the call under the entry point's name and returns CUDA_ERROR_NOT_SUPPORTED.
inline CUresult refuse(std::string_view symbol) {
    for (uint32_t i = 0; i < std::size(kCoverage); ++i)
        if (symbol == kCoverage[i].symbol) return unsupported(i);
    return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace smt::interpose
