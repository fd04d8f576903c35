// New arrays read as zero, as all memory that is new to a tenant. The driver takes their memory from where
// other tenants' arrays were, and does not zero it.
//
// An array has no address, so it is zeroed by copies from a small buffer of zeros in device memory, one piece
// of the array's rows after the other. The lane's thread waits for the copies on a stream of the server's
// own, as for zeroed memory (tenant_memory.h); no other stream waits.
//
// Sparse arrays and those with deferred mapping have no memory, and get none (cuMemMapArrayAsync is not
// served). They are left alone: on an H100 a copy to an array with deferred mapping is an illegal address,
// which ends the context.
#include <algorithm>
#include <mutex>

#include "runtime/protocol/try.h"
#include "runtime/server/memory/array_size.h"
#include "runtime/server/session.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

namespace {

constexpr uint64_t kZeroBytes = 2u << 20;  // of the buffer, and of a copy
constexpr unsigned kWithoutMemory = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

// On a device that keeps sessions apart a shared stream would order them.
class ZeroingStream {
public:
    explicit ZeroingStream(Call& call) : driver_(call.driver) {
        device::Device& device = call.session.device();
        if (!device.properties().keeps_sessions_apart)
            stream_ = device.errands();
        else if (driver_.cuStreamCreate(&own_, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS)
            stream_ = own_;
    }
    ~ZeroingStream() {
        if (own_) driver_.cuStreamDestroy_v2(own_);
    }
    ZeroingStream(const ZeroingStream&) = delete;
    ZeroingStream& operator=(const ZeroingStream&) = delete;
    CUstream get() const { return stream_; }  // null: it could not be made

private:
    const DriverApi& driver_;
    CUstream stream_ = nullptr, own_ = nullptr;
};

// The buffer of zeros, made for the server's first array and kept.
CUresult zeros(const DriverApi& driver, CUstream stream, CUdeviceptr* buffer) {
    static std::mutex mutex;
    static CUdeviceptr made = 0;
    std::lock_guard lock(mutex);
    if (made == 0) {
        CUdeviceptr fresh = 0;
        SMT_TRY(driver.cuMemAlloc_v2(&fresh, kZeroBytes));
        CUresult status = driver.cuMemsetD8Async(fresh, 0, kZeroBytes, stream);
        if (status == CUDA_SUCCESS) status = driver.cuStreamSynchronize(stream);
        if (status != CUDA_SUCCESS) {
            driver.cuMemFree_v2(fresh);
            return status;
        }
        made = fresh;
    }
    *buffer = made;
    return CUDA_SUCCESS;
}

// `piece`: where in the array, and how much of it.
CUresult copy_zeros(const DriverApi& driver, CUdeviceptr zeros, CUDA_MEMCPY3D piece, CUstream stream) {
    piece.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    piece.srcDevice = zeros;
    piece.srcPitch = piece.WidthInBytes;
    piece.srcHeight = piece.Height;
    return driver.cuMemcpy3DAsync_v2(&piece, stream);
}

// Enqueues the copies. An array of a format whose copies are unknown here is refused.
CUresult zero(const DriverApi& driver, CUarray array, CUdeviceptr zeros, CUstream stream) {
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    SMT_TRY(driver.cuArray3DGetDescriptor_v2(&shape, array));
    const std::optional<Element> element = element_of(shape.Format, shape.NumChannels);
    if (!element) return CUDA_ERROR_NOT_SUPPORTED;
    const auto elements = [&](uint64_t texels) {
        return (std::max<uint64_t>(texels, 1) + element->side - 1) / element->side;
    };
    const uint64_t width = elements(shape.Width) * element->bytes, rows = elements(shape.Height),
                   slices = std::max<uint64_t>(shape.Depth, 1);
    CUDA_MEMCPY3D piece{};
    piece.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    piece.dstArray = array;
    const uint64_t most_width = std::min(width, kZeroBytes),
                   most_rows = std::min(rows, kZeroBytes / most_width);
    const uint64_t most_slices = std::min(slices, most_rows == rows ? kZeroBytes / (most_width * rows) : 1);
    for (piece.dstZ = 0; piece.dstZ < slices; piece.dstZ += most_slices) {
        piece.Depth = std::min(most_slices, slices - piece.dstZ);
        for (piece.dstY = 0; piece.dstY < rows; piece.dstY += most_rows) {
            piece.Height = std::min(most_rows, rows - piece.dstY);
            for (piece.dstXInBytes = 0; piece.dstXInBytes < width; piece.dstXInBytes += most_width) {
                piece.WidthInBytes = std::min(most_width, width - piece.dstXInBytes);
                SMT_TRY(copy_zeros(driver, zeros, piece, stream));
            }
        }
    }
    return CUDA_SUCCESS;
}

// `each`: calls its argument for each array that has memory of its own.
template <typename Each>
CUresult zero_each(Call& call, const Each& each) {
    const ZeroingStream stream(call);
    if (!stream.get()) return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr buffer = 0;
    CUresult status = zeros(call.driver, stream.get(), &buffer);
    if (status == CUDA_SUCCESS)
        status = each([&](CUarray array) { return zero(call.driver, array, buffer, stream.get()); });
    const CUresult ended =
        call.driver.cuStreamSynchronize(stream.get());  // also of copies before one that failed
    return status != CUDA_SUCCESS ? status : ended;
}

CUresult zero_or_destroy(Call& call, CUarray array) {
    const CUresult status = zero_each(call, [&](const auto& zero) { return zero(array); });
    if (status != CUDA_SUCCESS) call.driver.cuArrayDestroy(array);
    return status;
}

}  // namespace

CUresult cuArrayCreate_v2(Call& call, CUarray* array, const CUDA_ARRAY_DESCRIPTOR* shape) {
    if (!call.driver.cuArrayCreate_v2) return CUDA_ERROR_NOT_SUPPORTED;
    CUarray made = nullptr;
    CUresult status = call.driver.cuArrayCreate_v2(array ? &made : nullptr, shape);
    if (status == CUDA_SUCCESS) status = zero_or_destroy(call, made);
    if (status == CUDA_SUCCESS) *array = made;
    return status;
}

CUresult cuArray3DCreate_v2(Call& call, CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
    if (!call.driver.cuArray3DCreate_v2) return CUDA_ERROR_NOT_SUPPORTED;
    CUarray made = nullptr;
    CUresult status = call.driver.cuArray3DCreate_v2(array ? &made : nullptr, shape);
    if (status == CUDA_SUCCESS && !(shape->Flags & kWithoutMemory)) status = zero_or_destroy(call, made);
    if (status == CUDA_SUCCESS) *array = made;
    return status;
}

CUresult cuMipmappedArrayCreate(Call& call, CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                unsigned int levels) {
    if (!call.driver.cuMipmappedArrayCreate) return CUDA_ERROR_NOT_SUPPORTED;
    CUmipmappedArray made = nullptr;
    CUresult status = call.driver.cuMipmappedArrayCreate(array ? &made : nullptr, shape, levels);
    if (status != CUDA_SUCCESS) return status;
    if (!(shape->Flags & kWithoutMemory)) {
        status = zero_each(call, [&](const auto& zero) {
            // The driver clamps the number of levels. The first one that is not there is the end.
            for (unsigned int i = 0; i == 0 || i < levels; ++i) {
                CUarray level = nullptr;
                CUresult done = call.driver.cuMipmappedArrayGetLevel(&level, made, i);
                if (done == CUDA_ERROR_INVALID_VALUE && i > 0) break;
                if (done == CUDA_SUCCESS) done = zero(level);
                if (done != CUDA_SUCCESS) return done;
            }
            return CUDA_SUCCESS;
        });
    }
    if (status == CUDA_SUCCESS)
        *array = made;
    else
        call.driver.cuMipmappedArrayDestroy(made);
    return status;
}

}  // namespace smt::runtime::server::served
