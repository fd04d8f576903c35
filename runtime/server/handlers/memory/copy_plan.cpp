// See copy_plan.h.
#include "runtime/server/handlers/memory/copy_plan.h"

#include "runtime/protocol/layout.h"
#include "runtime/protocol/try.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using protocol::CopyEnd;
using protocol::Place;

namespace {

struct Extent {
    uint64_t width, height, depth;
};

// The first byte of a linear end and its extent. False: rows overlap, or the numbers overflow.
bool measure(const CopyEnd& end, const Extent& extent, PlannedEnd* planned, uint64_t* bytes) {
    using Wide = unsigned __int128;
    constexpr uint64_t kLargest = 1ull << 48;  // bound of each dimension; products of two do not overflow
    for (uint64_t value :
         {extent.width, extent.height, extent.depth, end.x_bytes, end.y, end.z, end.pitch, end.height})
        if (value > kLargest) return false;
    uint64_t pitch = end.pitch ? end.pitch : end.x_bytes + extent.width;
    uint64_t rows = end.height ? end.height : end.y + extent.height;
    if (end.x_bytes + extent.width > pitch && extent.height * extent.depth > 1) return false;
    Wide slice = Wide(pitch) * rows;
    if (slice > kLargest) return false;
    Wide first = Wide(end.address) + slice * end.z + Wide(pitch) * end.y + end.x_bytes;
    Wide span = slice * (extent.depth - 1) + Wide(pitch) * (extent.height - 1) + extent.width;
    if (first + span > ~uint64_t{0}) return false;
    *bytes = static_cast<uint64_t>(span);
    planned->address = static_cast<uint64_t>(first);
    planned->pitch = pitch;
    planned->height = rows;
    return true;
}

CUresult plan_end(Call& call, const CopyEnd& end, const Extent& extent, PlannedEnd* planned) {
    planned->lod = end.lod;
    if (end.place == Place::kArray) {
        planned->type = CU_MEMORYTYPE_ARRAY;
        planned->address = end.address;
        planned->x = end.x_bytes;
        planned->y = end.y;
        planned->z = end.z;
        call.uses.add(HandleKind::kArray, planned->address);
        return CUDA_SUCCESS;
    }
    uint64_t bytes = 0;
    if (!measure(end, extent, planned, &bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (end.place == Place::kHost) {
        planned->type = CU_MEMORYTYPE_HOST;
        return call.session.arena().contains(planned->address, bytes) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_VALUE;
    }
    if (end.place != Place::kDevice) return CUDA_ERROR_INVALID_VALUE;
    planned->type = CU_MEMORYTYPE_DEVICE;
    return call.session.memory().may_touch(planned->address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult plan_copy(Call& call, const protocol::Copy& copy, CopyPlan* plan) {
    Extent extent{copy.width_bytes, copy.height, copy.depth};
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_ERROR_INVALID_VALUE;
    *plan = {{}, {}, extent.width, extent.height, extent.depth};
    SMT_TRY(plan_end(call, copy.to, extent, &plan->to));
    return plan_end(call, copy.from, extent, &plan->from);
}

CUresult plan_slot_copy(Call& call, const protocol::CopySlot& copy, uint64_t slot, CopyPlan* plan) {
    Extent extent{copy.width_bytes, copy.height, copy.depth};
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_ERROR_INVALID_VALUE;
    if (copy.device.place == Place::kHost) return CUDA_ERROR_INVALID_VALUE;
    if (copy.offset > protocol::kStagingSlotBytes) return CUDA_ERROR_INVALID_VALUE;
    CopyEnd packed{Place::kHost, 0, slot + copy.offset, 0, 0, 0, extent.width, extent.height};
    *plan = {{}, {}, extent.width, extent.height, extent.depth};
    PlannedEnd& device = copy.to_device ? plan->to : plan->from;
    PlannedEnd& host = copy.to_device ? plan->from : plan->to;
    uint64_t bytes = 0;
    if (!measure(packed, extent, &host, &bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > protocol::kStagingSlotBytes - copy.offset) return CUDA_ERROR_INVALID_VALUE;
    host.type = CU_MEMORYTYPE_HOST;
    return plan_end(call, copy.device, extent, &device);
}

CUresult CopyPlan::enqueue(const DriverApi& driver, CUstream stream) const {
    if (linear()) return enqueue_linear(driver, stream);
    if (depth == 1 && to.z == 0 && from.z == 0 && to.lod == 0 && from.lod == 0) {
        CUDA_MEMCPY2D flat = flat_shape();
        return driver.cuMemcpy2DAsync_v2(&flat, stream);
    }
    CUDA_MEMCPY3D solid = shape();
    return driver.cuMemcpy3DAsync_v2(&solid, stream);
}

CUresult CopyPlan::enqueue_linear(const DriverApi& driver, CUstream stream) const {
    bool to_host = to.type == CU_MEMORYTYPE_HOST;
    bool from_host = from.type == CU_MEMORYTYPE_HOST;
    if (to_host && from_host) return driver.cuMemcpyAsync(to.address, from.address, width, stream);
    if (to_host)
        return driver.cuMemcpyDtoHAsync_v2(reinterpret_cast<void*>(to.address), from.address, width, stream);
    if (from_host)
        return driver.cuMemcpyHtoDAsync_v2(to.address, reinterpret_cast<const void*>(from.address), width,
                                           stream);
    return driver.cuMemcpyDtoDAsync_v2(to.address, from.address, width, stream);
}

CUDA_MEMCPY2D CopyPlan::flat_shape() const {
    CUDA_MEMCPY3D solid = shape();
    CUDA_MEMCPY2D flat{};
    flat.srcXInBytes = solid.srcXInBytes;
    flat.srcY = solid.srcY;
    flat.srcMemoryType = solid.srcMemoryType;
    flat.srcHost = solid.srcHost;
    flat.srcDevice = solid.srcDevice;
    flat.srcArray = solid.srcArray;
    flat.srcPitch = solid.srcPitch;
    flat.dstXInBytes = solid.dstXInBytes;
    flat.dstY = solid.dstY;
    flat.dstMemoryType = solid.dstMemoryType;
    flat.dstHost = solid.dstHost;
    flat.dstDevice = solid.dstDevice;
    flat.dstArray = solid.dstArray;
    flat.dstPitch = solid.dstPitch;
    flat.WidthInBytes = width;
    flat.Height = height;
    return flat;
}

CUDA_MEMCPY3D CopyPlan::shape() const {
    CUDA_MEMCPY3D solid{};
    solid.srcXInBytes = from.x;
    solid.srcY = from.y;
    solid.srcZ = from.z;
    solid.srcLOD = from.lod;
    solid.srcMemoryType = from.type;
    if (from.type == CU_MEMORYTYPE_HOST) solid.srcHost = reinterpret_cast<const void*>(from.address);
    if (from.type == CU_MEMORYTYPE_DEVICE) solid.srcDevice = from.address;
    if (from.type == CU_MEMORYTYPE_ARRAY) solid.srcArray = reinterpret_cast<CUarray>(from.address);
    solid.srcPitch = from.pitch;
    solid.srcHeight = from.height;
    solid.dstXInBytes = to.x;
    solid.dstY = to.y;
    solid.dstZ = to.z;
    solid.dstLOD = to.lod;
    solid.dstMemoryType = to.type;
    if (to.type == CU_MEMORYTYPE_HOST) solid.dstHost = reinterpret_cast<void*>(to.address);
    if (to.type == CU_MEMORYTYPE_DEVICE) solid.dstDevice = to.address;
    if (to.type == CU_MEMORYTYPE_ARRAY) solid.dstArray = reinterpret_cast<CUarray>(to.address);
    solid.dstPitch = to.pitch;
    solid.dstHeight = to.height;
    solid.WidthInBytes = width;
    solid.Height = height;
    solid.Depth = depth;
    return solid;
}

}  // namespace smt::runtime::server::handlers
