// Channel formats: a description of four widths here, an enumeration and a count in the driver.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace smt::cudart {

// INVALID_CHANNEL_DESCRIPTOR for what the driver has no format for.
cudaError_t driver_channels(const cudaChannelFormatDesc& channels, CUarray_format& format, unsigned& count);
cudaChannelFormatDesc runtime_channels(CUarray_format format, unsigned count);
size_t format_bytes(CUarray_format format);  // of one channel; 0: no format of plain elements

}  // namespace smt::cudart
