// Copies and fills, in stream order. Host, device and array memory are all the same here.
#include <algorithm>
#include <cstring>

#include "runtime/device/hosted/backend.h"

namespace smt::runtime::device::hosted {

char* array_bytes(CUarray array, uint64_t x, uint64_t y, uint64_t z, uint64_t bytes);  // arrays.cpp

namespace {

struct End {
    CUmemorytype type;
    CUarray array;
    char* base;
    uint64_t x, y, z, pitch, height;

    // Null: not there.
    char* row(uint64_t row, uint64_t slice, uint64_t width) const {
        if (type == CU_MEMORYTYPE_ARRAY) return array_bytes(array, x, y + row, z + slice, width);
        const uint64_t at = reinterpret_cast<uint64_t>(base) + ((z + slice) * height + y + row) * pitch + x;
        return touchable(at, width) ? reinterpret_cast<char*>(at) : nullptr;
    }
};

char* memory(CUmemorytype type, const void* host, CUdeviceptr device) {
    return type == CU_MEMORYTYPE_HOST ? static_cast<char*>(const_cast<void*>(host))
                                      : reinterpret_cast<char*>(device);
}

// Small copies from unregistered host memory: the driver has read the source when the call returns.
constexpr size_t kReadAtOnce = 64u << 10;

constexpr size_t kFilledAtOnce = 16u << 10;  // of a fill: what is there already is copied behind itself

Work read_now(CUstream handle, uint64_t to, uint64_t from, size_t bytes) {
    Lock lock(world());
    auto stream = find_stream(handle);
    if (bytes > kReadAtOnce || !stream || stream->capture || registered(from, bytes) || on_device(from))
        return nullptr;
    const char* source = reinterpret_cast<const char*>(from);
    return [to, data = std::vector<char>(source, source + bytes)] {
        if (touchable(to, data.size())) memcpy(reinterpret_cast<char*>(to), data.data(), data.size());
    };
}

CUresult linear(CUstream stream, bool wait, uint64_t to, uint64_t from, size_t bytes) {
    if (!accessible(to, bytes) || !accessible(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
    Work from_copy = wait ? nullptr : read_now(stream, to, from, bytes);
    auto node = std::make_unique<Node>();
    node->type = CU_GRAPH_NODE_TYPE_MEMCPY;
    node->copy.srcMemoryType = node->copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    node->copy.srcDevice = from;
    node->copy.dstDevice = to;
    node->copy.WidthInBytes = bytes;
    node->copy.Height = node->copy.Depth = 1;
    node->work = from_copy ? std::move(from_copy) : copy_work(node->copy);
    return wait ? perform(stream, std::move(node)) : enqueue(stream, std::move(node));
}

uint64_t number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

CUDA_MEMCPY3D widen(const CUDA_MEMCPY2D& from) {
    CUDA_MEMCPY3D to{};
    to.srcXInBytes = from.srcXInBytes, to.srcY = from.srcY;
    to.srcMemoryType = from.srcMemoryType, to.srcHost = from.srcHost, to.srcDevice = from.srcDevice;
    to.srcArray = from.srcArray, to.srcPitch = from.srcPitch;
    to.dstXInBytes = from.dstXInBytes, to.dstY = from.dstY;
    to.dstMemoryType = from.dstMemoryType, to.dstHost = from.dstHost, to.dstDevice = from.dstDevice;
    to.dstArray = from.dstArray, to.dstPitch = from.dstPitch;
    to.WidthInBytes = from.WidthInBytes, to.Height = from.Height, to.Depth = 1;
    return to;
}

bool has(CUmemorytype type, CUarray array, size_t x, size_t y, size_t z, const CUDA_MEMCPY3D& copy) {
    return type != CU_MEMORYTYPE_ARRAY ||
           array_bytes(array, x, y + copy.Height - 1, z + copy.Depth - 1, copy.WidthInBytes);
}

CUresult shaped(CUstream stream, const CUDA_MEMCPY3D& copy, bool wait) {
    const bool any = copy.WidthInBytes != 0 && copy.Height != 0 && copy.Depth != 0;
    if (any && (!has(copy.srcMemoryType, copy.srcArray, copy.srcXInBytes, copy.srcY, copy.srcZ, copy) ||
                !has(copy.dstMemoryType, copy.dstArray, copy.dstXInBytes, copy.dstY, copy.dstZ, copy)))
        return CUDA_ERROR_INVALID_VALUE;
    auto node = std::make_unique<Node>();
    node->type = CU_GRAPH_NODE_TYPE_MEMCPY;
    node->copy = copy;
    node->work = copy_work(copy);
    return wait ? perform(stream, std::move(node)) : enqueue(stream, std::move(node));
}

CUresult fill(CUstream stream, CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
              size_t height) {
    auto node = std::make_unique<Node>();
    node->type = CU_GRAPH_NODE_TYPE_MEMSET;
    node->fill.dst = to;
    node->fill.pitch = pitch;
    node->fill.value = value;
    node->fill.elementSize = element;
    node->fill.width = width;
    node->fill.height = height;
    node->work = fill_work(node->fill);
    if (width && height && !accessible(to, (height - 1) * pitch + width * element))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(stream, std::move(node));
}

}  // namespace

Work copy_work(const CUDA_MEMCPY3D& copy) {
    const End from{copy.srcMemoryType,
                   copy.srcArray,
                   memory(copy.srcMemoryType, copy.srcHost, copy.srcDevice),
                   copy.srcXInBytes,
                   copy.srcY,
                   copy.srcZ,
                   copy.srcPitch ? copy.srcPitch : copy.WidthInBytes,
                   copy.srcHeight ? copy.srcHeight : copy.Height};
    const End to{copy.dstMemoryType,
                 copy.dstArray,
                 memory(copy.dstMemoryType, copy.dstHost, copy.dstDevice),
                 copy.dstXInBytes,
                 copy.dstY,
                 copy.dstZ,
                 copy.dstPitch ? copy.dstPitch : copy.WidthInBytes,
                 copy.dstHeight ? copy.dstHeight : copy.Height};
    const uint64_t width = copy.WidthInBytes, height = copy.Height, depth = copy.Depth;
    if (width == 0) return [] {};
    return [=] {
        for (uint64_t z = 0; z < depth; ++z) {
            for (uint64_t y = 0; y < height; ++y) {
                char* target = to.row(y, z, width);
                const char* source = from.row(y, z, width);
                if (!target || !source) return;
                memmove(target, source, width);
            }
        }
    };
}

Work fill_work(const CUDA_MEMSET_NODE_PARAMS& fill) {
    if (fill.width == 0) return [] {};  // however many rows
    return [fill] {
        for (size_t row = 0; row < fill.height; ++row) {
            char* to = reinterpret_cast<char*>(fill.dst + row * fill.pitch);
            if (fill.width > 1ull << 40 ||
                !touchable(fill.dst + row * fill.pitch, fill.width * fill.elementSize))
                return;
            if (fill.elementSize == 1 || fill.value == 0) {  // most of them, and large
                memset(to, static_cast<unsigned char>(fill.value), fill.width * fill.elementSize);
                continue;
            }
            const size_t bytes = fill.width * fill.elementSize;
            memcpy(to, &fill.value, fill.elementSize);
            for (size_t done = fill.elementSize, next = 0; done < bytes; done += next) {
                next = std::min({done, bytes - done, kFilledAtOnce});  // whole elements, as `done` is
                memcpy(to + done, to, next);
            }
        }
    };
}

}  // namespace smt::runtime::device::hosted

using namespace smt::runtime::device::hosted;

DRIVER_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    DRIVER_ASKED(cuMemcpyAsync, "%llx<-%llx bytes=%zu", to, from, bytes);
    return linear(stream, false, to, from, bytes);
}
DRIVER_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    DRIVER_ASKED(cuMemcpy, "bytes=%zu", bytes);
    return linear(nullptr, true, to, from, bytes);
}
DRIVER_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    DRIVER_ASKED(cuMemcpyHtoDAsync_v2, "%llx<-%p bytes=%zu", to, from, bytes);
    return linear(stream, false, to, number(from), bytes);
}
DRIVER_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    DRIVER_ASKED(cuMemcpyDtoHAsync_v2, "%p<-%llx bytes=%zu", to, from, bytes);
    return linear(stream, false, number(to), from, bytes);
}
DRIVER_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    DRIVER_ASKED(cuMemcpyDtoDAsync_v2, "%llx<-%llx bytes=%zu", to, from, bytes);
    return linear(stream, false, to, from, bytes);
}
DRIVER_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
    DRIVER_ASKED(cuMemcpyHtoD_v2, "bytes=%zu", bytes);
    return linear(nullptr, true, to, number(from), bytes);
}
DRIVER_EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
    DRIVER_ASKED(cuMemcpyDtoH_v2, "bytes=%zu", bytes);
    return linear(nullptr, true, number(to), from, bytes);
}
DRIVER_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    DRIVER_ASKED(cuMemcpyDtoD_v2, "bytes=%zu", bytes);
    return linear(nullptr, true, to, from, bytes);
}
DRIVER_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemcpy2DAsync_v2, "%zux%zu", copy->WidthInBytes, copy->Height);
    return shaped(stream, widen(*copy), false);
}
DRIVER_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemcpy2D_v2);
    return shaped(nullptr, widen(*copy), true);
}
DRIVER_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemcpy3DAsync_v2, "%zux%zux%zu", copy->WidthInBytes, copy->Height, copy->Depth);
    return shaped(stream, *copy, false);
}
DRIVER_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemcpy3D_v2);
    return shaped(nullptr, *copy, true);
}

DRIVER_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    DRIVER_ASKED(cuMemsetD8Async, "%llx bytes=%zu", to, count);
    return fill(stream, to, 0, value, 1, count, 1);
}
DRIVER_EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    DRIVER_ASKED(cuMemsetD16Async);
    return fill(stream, to, 0, value, 2, count, 1);
}
DRIVER_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    DRIVER_ASKED(cuMemsetD32Async);
    return fill(stream, to, 0, value, 4, count, 1);
}
DRIVER_EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                         size_t height, CUstream stream) {
    DRIVER_ASKED(cuMemsetD2D8Async);
    return fill(stream, to, pitch, value, 1, width, height);
}
DRIVER_EXPORT CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                          size_t height, CUstream stream) {
    DRIVER_ASKED(cuMemsetD2D16Async);
    return fill(stream, to, pitch, value, 2, width, height);
}
DRIVER_EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                                          size_t height, CUstream stream) {
    DRIVER_ASKED(cuMemsetD2D32Async);
    return fill(stream, to, pitch, value, 4, width, height);
}
