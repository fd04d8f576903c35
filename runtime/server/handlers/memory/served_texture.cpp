// Texture and surface objects: arrays and memory in their descriptors must be the tenant's.
#include "runtime/protocol/api/sizes.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/session.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

namespace {

// Adds the array to the call's uses, or checks the memory range.
CUresult check(Call& call, CUDA_RESOURCE_DESC& resource) {
    const auto memory = [&](CUdeviceptr address, uint64_t bytes) {
        return call.session.memory().may_touch(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    };
    auto& res = resource.res;
    switch (resource.resType) {
        case CU_RESOURCE_TYPE_ARRAY:
            call.uses.add(HandleKind::kArray, res.array.hArray);
            return call.uses.begin();
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            call.uses.add(HandleKind::kMipmappedArray, res.mipmap.hMipmappedArray);
            return call.uses.begin();
        case CU_RESOURCE_TYPE_LINEAR:
            return memory(res.linear.devPtr, res.linear.sizeInBytes);
        case CU_RESOURCE_TYPE_PITCH2D:
            return memory(res.pitch2D.devPtr, protocol::times(res.pitch2D.pitchInBytes, res.pitch2D.height));
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

// Replaces the driver's handle by the session's id. Null: the array no longer exists.
void name_array(Call& call, CUDA_RESOURCE_DESC& resource) {
    if (resource.resType == CU_RESOURCE_TYPE_ARRAY) call.known(HandleKind::kArray, resource.res.array.hArray);
    if (resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        call.known(HandleKind::kMipmappedArray, resource.res.mipmap.hMipmappedArray);
}

}  // namespace

CUresult cuTexObjectCreate(Call& call, CUtexObject* object, const CUDA_RESOURCE_DESC* wanted,
                           const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
    CUDA_RESOURCE_DESC resource = *wanted;
    CUresult status = check(call, resource);
    if (status != CUDA_SUCCESS) return status;
    if (!call.driver.cuTexObjectCreate) return CUDA_ERROR_NOT_SUPPORTED;
    return call.driver.cuTexObjectCreate(object, &resource, texture, view);
}

CUresult cuTexObjectGetResourceDesc(Call& call, CUDA_RESOURCE_DESC* resource, CUtexObject object) {
    if (!call.driver.cuTexObjectGetResourceDesc) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuTexObjectGetResourceDesc(resource, object);
    if (status == CUDA_SUCCESS && resource) name_array(call, *resource);
    return status;
}

CUresult cuSurfObjectCreate(Call& call, CUsurfObject* object, const CUDA_RESOURCE_DESC* wanted) {
    CUDA_RESOURCE_DESC resource = *wanted;
    CUresult status = check(call, resource);
    if (status != CUDA_SUCCESS) return status;
    if (!call.driver.cuSurfObjectCreate) return CUDA_ERROR_NOT_SUPPORTED;
    return call.driver.cuSurfObjectCreate(object, &resource);
}

CUresult cuSurfObjectGetResourceDesc(Call& call, CUDA_RESOURCE_DESC* resource, CUsurfObject object) {
    if (!call.driver.cuSurfObjectGetResourceDesc) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuSurfObjectGetResourceDesc(resource, object);
    if (status == CUDA_SUCCESS && resource) name_array(call, *resource);
    return status;
}

}  // namespace smt::runtime::server::served
