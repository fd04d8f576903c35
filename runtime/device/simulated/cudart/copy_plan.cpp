#include "runtime/device/simulated/cudart/copy_plan.h"

#include "runtime/device/simulated/cudart/array.h"

namespace smt::cudart {

namespace {

struct Sides {
    CUmemorytype to;
    CUmemorytype from;
};

Sides sides(cudaMemcpyKind kind) {
    switch (kind) {
        case cudaMemcpyHostToHost:
            return {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST};
        case cudaMemcpyHostToDevice:
            return {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
        case cudaMemcpyDeviceToHost:
            return {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE};
        case cudaMemcpyDeviceToDevice:
            return {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE};
        default:
            return {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED};
    }
}

CUarray handle_of(cudaArray_const_t array) {
    return reinterpret_cast<CUarray>(const_cast<cudaArray*>(array));
}

bool is_host(CUmemorytype type) { return type == CU_MEMORYTYPE_HOST; }

// Bytes of an element: the extent and the offsets of an array's end count elements.
cudaError_t element_bytes(cudaArray_const_t to, cudaArray_const_t from, size_t& bytes) {
    bytes = 1;
    if (!to && !from) return cudaSuccess;
    ArrayShape shape;
    cudaError_t failed = shape_of(to ? to : from, shape);
    if (!failed) bytes = shape.element_bytes;
    return failed;
}

Place place(const cudaPitchedPtr& pitched, cudaArray_const_t array, cudaPos at, size_t element) {
    return {pitched.ptr, pitched.pitch, pitched.ysize, array, at.x * (array ? element : 1), at.y, at.z};
}

}  // namespace

cudaError_t check_kind(cudaMemcpyKind kind) {
    return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault ? cudaSuccess
                                                                     : cudaErrorInvalidMemcpyDirection;
}

Copy box_copy(const Place& to, const Place& from, cudaExtent bytes, cudaMemcpyKind kind) {
    Copy copy;
    copy.error = check_kind(kind);
    Sides side = sides(kind);
    CUDA_MEMCPY3D& plan = copy.plan;
    plan.srcMemoryType = from.array ? CU_MEMORYTYPE_ARRAY : side.from;
    plan.srcArray = handle_of(from.array);
    if (is_host(plan.srcMemoryType))
        plan.srcHost = from.pointer;
    else if (!from.array)
        plan.srcDevice = reinterpret_cast<CUdeviceptr>(from.pointer);
    plan.srcPitch = from.pitch;
    plan.srcHeight = from.height;
    plan.srcXInBytes = from.x;
    plan.srcY = from.y;
    plan.srcZ = from.z;
    plan.dstMemoryType = to.array ? CU_MEMORYTYPE_ARRAY : side.to;
    plan.dstArray = handle_of(to.array);
    if (is_host(plan.dstMemoryType))
        plan.dstHost = to.pointer;
    else if (!to.array)
        plan.dstDevice = reinterpret_cast<CUdeviceptr>(to.pointer);
    plan.dstPitch = to.pitch;
    plan.dstHeight = to.height;
    plan.dstXInBytes = to.x;
    plan.dstY = to.y;
    plan.dstZ = to.z;
    plan.WidthInBytes = bytes.width;
    plan.Height = bytes.height;
    plan.Depth = bytes.depth;
    return copy;
}

Copy linear_copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return box_copy({to, bytes, 1}, {const_cast<void*>(from), bytes, 1}, {bytes, 1, 1}, kind);
}

Copy copy_to(const Symbol& symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    Copy copy = linear_copy(reinterpret_cast<void*>(symbol.address + offset), from, bytes, kind);
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost)
        copy.error = cudaErrorInvalidMemcpyDirection;
    if (offset > symbol.bytes || bytes > symbol.bytes - offset) copy.error = cudaErrorInvalidValue;
    return copy;
}

Copy copy_from(void* to, const Symbol& symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    Copy copy = linear_copy(to, reinterpret_cast<void*>(symbol.address + offset), bytes, kind);
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice)
        copy.error = cudaErrorInvalidMemcpyDirection;
    if (offset > symbol.bytes || bytes > symbol.bytes - offset) copy.error = cudaErrorInvalidValue;
    return copy;
}

Copy shaped_copy(const cudaMemcpy3DParms* p) {
    Copy refused;
    refused.error = cudaErrorInvalidValue;
    if (!p || bool(p->srcArray) == bool(p->srcPtr.ptr) || bool(p->dstArray) == bool(p->dstPtr.ptr))
        return refused;
    size_t element = 1;
    if (cudaError_t failed = element_bytes(p->dstArray, p->srcArray, element))
        return refused.error = failed, refused;
    cudaExtent bytes = {p->extent.width * element, p->extent.height, p->extent.depth};
    return box_copy(place(p->dstPtr, p->dstArray, p->dstPos, element),
                    place(p->srcPtr, p->srcArray, p->srcPos, element), bytes, p->kind);
}

cudaError_t describe(const CUDA_MEMCPY3D& plan, cudaMemcpy3DParms* p) {
    if (!p) return cudaErrorInvalidValue;
    *p = {};
    p->srcArray = reinterpret_cast<cudaArray_t>(plan.srcArray);
    p->dstArray = reinterpret_cast<cudaArray_t>(plan.dstArray);
    size_t element = 1;
    if (cudaError_t failed = element_bytes(p->dstArray, p->srcArray, element)) return failed;
    p->srcPos = {plan.srcXInBytes / (p->srcArray ? element : 1), plan.srcY, plan.srcZ};
    p->dstPos = {plan.dstXInBytes / (p->dstArray ? element : 1), plan.dstY, plan.dstZ};
    const void* from = is_host(plan.srcMemoryType) ? plan.srcHost : reinterpret_cast<void*>(plan.srcDevice);
    void* to = is_host(plan.dstMemoryType) ? plan.dstHost : reinterpret_cast<void*>(plan.dstDevice);
    if (!p->srcArray) p->srcPtr = {const_cast<void*>(from), plan.srcPitch, plan.WidthInBytes, plan.srcHeight};
    if (!p->dstArray) p->dstPtr = {to, plan.dstPitch, plan.WidthInBytes, plan.dstHeight};
    p->extent = {plan.WidthInBytes / element, plan.Height, plan.Depth};
    if (plan.srcMemoryType == CU_MEMORYTYPE_UNIFIED || plan.dstMemoryType == CU_MEMORYTYPE_UNIFIED)
        p->kind = cudaMemcpyDefault;
    else if (is_host(plan.srcMemoryType))
        p->kind = is_host(plan.dstMemoryType) ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    else
        p->kind = is_host(plan.dstMemoryType) ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
    return cudaSuccess;
}

cudaError_t perform(const Copy& copy, Order order) {
    if (copy.error != cudaSuccess) return copy.error;
    if (copy.plan.WidthInBytes == 0 || copy.plan.Height == 0 || copy.plan.Depth == 0) return cudaSuccess;
    return from_driver(SMT_IN_ORDER(order, cuMemcpy3D_v2, cuMemcpy3DAsync_v2, &copy.plan));
}

cudaError_t shape_of(cudaArray_const_t array, ArrayShape& shape) {
    CUDA_ARRAY3D_DESCRIPTOR facts{};
    if (CUresult status = driver().cuArray3DGetDescriptor_v2(&facts, handle_of(array)))
        return from_driver(status);
    shape.element_bytes = format_bytes(facts.Format) * facts.NumChannels;
    shape.row_bytes = shape.element_bytes * facts.Width;
    return shape.element_bytes ? cudaSuccess : cudaErrorNotSupported;
}

}  // namespace smt::cudart
