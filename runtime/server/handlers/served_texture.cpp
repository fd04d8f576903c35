// Texture and surface objects: their descriptions name arrays and memory, which must be the tenant's.
#include "interpose/api/sizes.h"
#include "runtime/server/handlers/tenant_memory.h"
#include "runtime/server/session.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

namespace {

CUresult check(Call& call, const CUDA_RESOURCE_DESC& resource) {
    const auto memory = [&](CUdeviceptr address, uint64_t bytes) {
        return call.session.memory().may_touch(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    };
    const auto& res = resource.res;
    switch (resource.resType) {
        case CU_RESOURCE_TYPE_ARRAY:
            return call.owned(HandleKind::kArray, reinterpret_cast<uint64_t>(res.array.hArray));
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            return call.owned(HandleKind::kMipmappedArray,
                              reinterpret_cast<uint64_t>(res.mipmap.hMipmappedArray));
        case CU_RESOURCE_TYPE_LINEAR:
            return memory(res.linear.devPtr, res.linear.sizeInBytes);
        case CU_RESOURCE_TYPE_PITCH2D:
            return memory(res.pitch2D.devPtr, interpose::times(res.pitch2D.pitchInBytes, res.pitch2D.height));
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace

CUresult cuTexObjectCreate(Call& call, CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
    CUresult status = check(call, *resource);
    if (status != CUDA_SUCCESS) return status;
    if (!call.driver.cuTexObjectCreate) return CUDA_ERROR_NOT_SUPPORTED;
    return call.driver.cuTexObjectCreate(object, resource, texture, view);
}

CUresult cuSurfObjectCreate(Call& call, CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
    CUresult status = check(call, *resource);
    if (status != CUDA_SUCCESS) return status;
    if (!call.driver.cuSurfObjectCreate) return CUDA_ERROR_NOT_SUPPORTED;
    return call.driver.cuSurfObjectCreate(object, resource);
}

}  // namespace smt::runtime::server::served
