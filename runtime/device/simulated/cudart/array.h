// Conversion of channel formats: four widths in the runtime's descriptor, an enumeration and a channel count
// in the driver.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace smt::cudart {

// INVALID_CHANNEL_DESCRIPTOR where the driver has no matching format.
cudaError_t driver_channels(const cudaChannelFormatDesc& channels, CUarray_format& format, unsigned& count);
cudaChannelFormatDesc runtime_channels(CUarray_format format, unsigned count);
size_t format_bytes(CUarray_format format);  // of one channel; 0: elements of no plain type

}  // namespace smt::cudart
