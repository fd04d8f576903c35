// Synchronous fills. The driver does not wait for a fill of device memory either, only for one of host
// memory, but it reports a wrong destination at once. A destination entirely in the map cannot be wrong, so
// its fill is not waited for; any other is.
#include "driver.gen.h"
#include "interpose/driver/ranges.h"
#include "interpose/transport/lane.h"

namespace smt::interpose::driver {
namespace {

template <typename Fill>
CUresult fill_bytes_at(CUdeviceptr to, uint64_t bytes, CUstream stream, Fill fill) {
    Range range;
    const bool found = find_range(to, range), known = found && range.holds(to, bytes);
    // What the program mapped itself may go on in its next mapping.
    if (found && !known && on_device(range.memory) && range.memory != Memory::kVirtual)
        return CUDA_ERROR_INVALID_VALUE;
    if (known && range.memory == Memory::kNoted) return CUDA_ERROR_INVALID_VALUE;
    const bool registered = known && range.memory == Memory::kRegistered;
    CUresult status = fill(registered ? range.translated(to) : to);
    if (status != CUDA_SUCCESS) return status;
    if (known && on_device(range.memory) && range.memory != Memory::kVirtual && !range.sync_memops)
        return CUDA_SUCCESS;
    status = driver::cuStreamSynchronize(stream);
    CUresult failed = late_error();
    return failed != CUDA_SUCCESS ? failed : status;
}

template <typename Fill>
CUresult fill_run(CUdeviceptr to, size_t count, size_t element, CUstream stream, Fill fill) {
    size_t bytes;
    if (count == 0) return CUDA_SUCCESS;
    if (__builtin_mul_overflow(count, element, &bytes) || to % element != 0) return CUDA_ERROR_INVALID_VALUE;
    return fill_bytes_at(to, bytes, stream, fill);
}

template <typename Fill>
CUresult fill_rows(CUdeviceptr to, size_t pitch, size_t width, size_t height, size_t element, CUstream stream,
                   Fill fill) {
    size_t row, bytes;
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    if (__builtin_mul_overflow(width, element, &row) || __builtin_mul_overflow(pitch, height - 1, &bytes) ||
        __builtin_add_overflow(bytes, row, &bytes) || to % element != 0 || pitch % element != 0 ||
        (height > 1 && pitch < row))
        return CUDA_ERROR_INVALID_VALUE;
    return fill_bytes_at(to, bytes, stream, fill);
}

}  // namespace

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return fill_run(to, count, 1, stream,
                    [&](CUdeviceptr at) { return driver::cuMemsetD8Async(at, value, count, stream); });
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    return fill_run(to, count, 2, stream,
                    [&](CUdeviceptr at) { return driver::cuMemsetD16Async(at, value, count, stream); });
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
    return fill_run(to, count, 4, stream,
                    [&](CUdeviceptr at) { return driver::cuMemsetD32Async(at, value, count, stream); });
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                         CUstream stream) {
    return fill_rows(to, pitch, width, height, 1, stream, [&](CUdeviceptr at) {
        return driver::cuMemsetD2D8Async(at, pitch, value, width, height, stream);
    });
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                          CUstream stream) {
    return fill_rows(to, pitch, width, height, 2, stream, [&](CUdeviceptr at) {
        return driver::cuMemsetD2D16Async(at, pitch, value, width, height, stream);
    });
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                          CUstream stream) {
    return fill_rows(to, pitch, width, height, 4, stream, [&](CUdeviceptr at) {
        return driver::cuMemsetD2D32Async(at, pitch, value, width, height, stream);
    });
}

}  // namespace smt::interpose::driver
