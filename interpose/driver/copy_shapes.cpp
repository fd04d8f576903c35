// Copies of rectangles and boxes: converts a driver's descriptor to a Transfer.
#include "driver.gen.h"
#include "interpose/driver/copy.h"

namespace smt::interpose::driver {
namespace {

// A rectangle is a box of one slice.
CUDA_MEMCPY3D box_of(const CUDA_MEMCPY2D& copy) {
    CUDA_MEMCPY3D box{};
    box.srcXInBytes = copy.srcXInBytes;
    box.srcY = copy.srcY;
    box.srcMemoryType = copy.srcMemoryType;
    box.srcHost = copy.srcHost;
    box.srcDevice = copy.srcDevice;
    box.srcArray = copy.srcArray;
    box.srcPitch = copy.srcPitch;
    box.dstXInBytes = copy.dstXInBytes;
    box.dstY = copy.dstY;
    box.dstMemoryType = copy.dstMemoryType;
    box.dstHost = copy.dstHost;
    box.dstDevice = copy.dstDevice;
    box.dstArray = copy.dstArray;
    box.dstPitch = copy.dstPitch;
    box.WidthInBytes = copy.WidthInBytes;
    box.Height = copy.Height;
    box.Depth = 1;
    return box;
}

CUresult copy_rectangle(const CUDA_MEMCPY2D* copy, CUstream stream, Manner manner) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    return transfer(shaped(box_of(*copy)), stream, manner);
}

template <typename D>
CUresult copy_box(const D* copy, CUstream stream, Manner manner) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    return transfer(shaped(*copy), stream, manner);
}

}  // namespace

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
    return copy_rectangle(copy, stream, Manner::kSynchronous);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
    return copy_rectangle(copy, stream, Manner::kSynchronous);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
    return copy_rectangle(copy, stream, Manner::kAsynchronous);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
    return copy_box(copy, stream, Manner::kSynchronous);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
    return copy_box(copy, stream, Manner::kAsynchronous);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
    return copy_box(copy, stream, Manner::kSynchronous);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
    return copy_box(copy, stream, Manner::kAsynchronous);
}

}  // namespace smt::interpose::driver
