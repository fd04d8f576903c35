// Device and host memory, where the runtime differs from the driver: zero bytes are no error, and neither is
// freeing null.
#include "cudart_written.gen.h"
#include "runtime/device/simulated/cudart/convert.h"

namespace smt::cudart {

namespace {

// The driver uses the element size for alignment only; all sizes give the same pitch.
constexpr unsigned kElementBytes = 4;

CUresult allocate_pitched(void** pointer, size_t* pitch, size_t width, size_t height) {
    *pointer = nullptr;
    *pitch = 0;
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    return driver().cuMemAllocPitch_v2(as_driver(pointer), pitch, width, height, kElementBytes);
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
    if (!pointer) return cudaErrorInvalidValue;
    *pointer = nullptr;
    return bytes == 0 ? cudaSuccess : from_driver(driver().cuMemAlloc_v2(as_driver(pointer), bytes));
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
    if (!pointer || !pitch) return cudaErrorInvalidValue;
    return from_driver(allocate_pitched(pointer, pitch, width, height));
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
    if (!pitched) return cudaErrorInvalidValue;
    if (extent.depth != 0 && extent.height > SIZE_MAX / extent.depth) return cudaErrorInvalidValue;
    void* pointer = nullptr;
    size_t pitch = 0;
    CUresult status = allocate_pitched(&pointer, &pitch, extent.width, extent.height * extent.depth);
    *pitched = {pointer, pitch, extent.width, extent.height};
    return from_driver(status);
}

cudaError_t cudaFree(void* pointer) {
    return pointer ? from_driver(driver().cuMemFree_v2(as_driver(pointer))) : cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
    if (!pointer) return cudaErrorInvalidValue;
    *pointer = nullptr;
    return bytes == 0 ? cudaSuccess : from_driver(driver().cuMemHostAlloc(pointer, bytes, flags));
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
    return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
    return pointer ? from_driver(driver().cuMemFreeHost(pointer)) : cudaSuccess;
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
    if (!pointer || bytes == 0) return cudaErrorInvalidValue;
    *pointer = nullptr;
    return from_driver(driver().cuMemAllocManaged(as_driver(pointer), bytes, flags));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    if (!attributes) return cudaErrorInvalidValue;
    unsigned memory_type = 0, managed = 0;
    int device = cudaInvalidDeviceId;
    CUdeviceptr device_pointer = 0;
    void* host_pointer = nullptr;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void* answers[] = {&memory_type, &managed, &device, &device_pointer, &host_pointer};
    CUresult status = driver().cuPointerGetAttributes(5, asked, answers, as_driver(pointer));
    if (status != CUDA_SUCCESS && status != CUDA_ERROR_INVALID_VALUE) return from_driver(status);
    *attributes = {};
    if (status == CUDA_ERROR_INVALID_VALUE || memory_type == 0) {  // plain memory of the program
        attributes->type = cudaMemoryTypeUnregistered;
        attributes->device = cudaInvalidDeviceId;
        attributes->hostPointer = const_cast<void*>(pointer);
        return cudaSuccess;
    }
    attributes->type = managed                             ? cudaMemoryTypeManaged
                       : memory_type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                           : cudaMemoryTypeDevice;
    attributes->device = device;
    attributes->devicePointer = reinterpret_cast<void*>(device_pointer);
    attributes->hostPointer = host_pointer;
    return cudaSuccess;
}

}  // namespace smt::cudart
