// The functions that our CUDA runtime (runtime/device/simulated/cudart/) calls in libsmt.so beyond the
// driver's interface: a table under an identifier of our own, found by cuGetExportTable.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace smt::protocol {

inline constexpr CUuuid kRuntimeTableId = {
    {'s', 'm', 't', ' ', 'r', 'u', 'n', 't', 'i', 'm', 'e', ' ', 't', 'a', 'b', 1}};

struct RuntimeTable {
    uint64_t bytes;
    // Reports the first call of a runtime function that is not supported to the server's journal. `index`
    // counts from 0 in kRuntimeCoverage (cudart_coverage.gen.h).
    void (*report_unsupported)(uint32_t index);
};

}  // namespace smt::protocol
