// What our own CUDA runtime (interpose/cudart/) may ask of libsmt.so beyond the driver's interface:
// a table of functions under an identifier of our own, found as such tables are, by cuGetExportTable.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace smt::interpose {

inline constexpr CUuuid kRuntimeTableId = {
    {'s', 'm', 't', ' ', 'r', 'u', 'n', 't', 'i', 'm', 'e', ' ', 't', 'a', 'b', 1}};

struct RuntimeTable {
    uint64_t bytes;
    // A function of the runtime that it does not do was called for the first time; `index` counts from 0 in
    // kRuntimeCoverage (cudart_coverage.gen.h). The server's journal hears of it.
    void (*report_unsupported)(uint32_t index);
};

}  // namespace smt::interpose
