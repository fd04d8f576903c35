// Fills. A fill of zero bytes does nothing.
#include "cudart_written.gen.h"
#include "runtime/device/simulated/cudart/convert.h"

namespace smt::cudart {

cudaError_t cudaMemset(void* pointer, int value, size_t bytes, Order order) {
    if (bytes == 0) return cudaSuccess;
    return from_driver(
        SMT_IN_ORDER(order, cuMemsetD8_v2, cuMemsetD8Async, as_driver(pointer), (unsigned char)value, bytes));
}

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height, Order order) {
    if (width == 0 || height == 0) return cudaSuccess;
    if (width > pitch && height > 1) return cudaErrorInvalidValue;
    return from_driver(SMT_IN_ORDER(order, cuMemsetD2D8_v2, cuMemsetD2D8Async, as_driver(pointer), pitch,
                                    (unsigned char)value, width, height));
}

// Fills plane by plane; all planes are one when the extent is as high as the memory.
cudaError_t cudaMemset3D(cudaPitchedPtr pitched, int value, cudaExtent extent, Order order) {
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
    if (extent.height == pitched.ysize || extent.depth == 1)
        return cudaMemset2D(pitched.ptr, pitched.pitch, value, extent.width, extent.height * extent.depth,
                            order);
    for (size_t z = 0; z < extent.depth; ++z) {
        void* plane = static_cast<char*>(pitched.ptr) + z * pitched.pitch * pitched.ysize;
        if (cudaError_t failed =
                cudaMemset2D(plane, pitched.pitch, value, extent.width, extent.height, order))
            return failed;
    }
    return cudaSuccess;
}

}  // namespace smt::cudart
