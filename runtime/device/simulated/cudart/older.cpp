// Functions of the runtimes of CUDA 11.8 and 12 whose structs or parameters are others in CUDA 13: today's
// function with today's struct. The generated libcudart.so.12 and .11.0 call them (older/*.api).
#include "runtime/device/simulated/cudart/older.h"

#include "cudart_written.gen.h"

namespace smt::cudart {

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const ResourceDesc12* resource) {
    if (!resource) return cudaErrorInvalidValue;
    const cudaResourceDesc today = resource->today();
    return smt::cudart::cudaCreateSurfaceObject(surface, &today);
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const ResourceDesc12* resource,
                                    const cudaTextureDesc* description, const ResourceViewDesc12* view) {
    if (!resource) return cudaErrorInvalidValue;
    const cudaResourceDesc today = resource->today();
    const cudaResourceViewDesc view_today = view ? view->today() : cudaResourceViewDesc{};
    return smt::cudart::cudaCreateTextureObject(texture, &today, description, view ? &view_today : nullptr);
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const ResourceDesc12* resource,
                                    const TextureDesc11* description, const ResourceViewDesc12* view) {
    if (!description) return cudaErrorInvalidValue;
    const cudaTextureDesc today = description->today();
    return smt::cudart::cudaCreateTextureObject(texture, resource, &today, view);
}

cudaError_t cudaGetSurfaceObjectResourceDesc(ResourceDesc12* resource, cudaSurfaceObject_t surface) {
    if (!resource) return cudaErrorInvalidValue;
    cudaResourceDesc today{};
    const cudaError_t failed = smt::cudart::cudaGetSurfaceObjectResourceDesc(&today, surface);
    if (!failed) resource->set(today);
    return failed;
}

cudaError_t cudaGetTextureObjectResourceDesc(ResourceDesc12* resource, cudaTextureObject_t texture) {
    if (!resource) return cudaErrorInvalidValue;
    cudaResourceDesc today{};
    const cudaError_t failed = smt::cudart::cudaGetTextureObjectResourceDesc(&today, texture);
    if (!failed) resource->set(today);
    return failed;
}

cudaError_t cudaGetTextureObjectResourceViewDesc(ResourceViewDesc12* view, cudaTextureObject_t texture) {
    if (!view) return cudaErrorInvalidValue;
    CUDA_RESOURCE_VIEW_DESC found{};
    if (CUresult status = driver().cuTexObjectGetResourceViewDesc(&found, texture))
        return from_driver(status);
    cudaResourceViewDesc today{};
    static_assert(sizeof today == sizeof found);
    memcpy(&today, &found, sizeof today);
    view->set(today);
    return cudaSuccess;
}

cudaError_t cudaGetTextureObjectTextureDesc(TextureDesc11* description, cudaTextureObject_t texture) {
    if (!description) return cudaErrorInvalidValue;
    cudaTextureDesc today{};
    const cudaError_t failed = smt::cudart::cudaGetTextureObjectTextureDesc(&today, texture);
    if (!failed) description->set(today);
    return failed;
}

cudaError_t cudaGetDeviceProperties(DeviceProp11* properties, int device) {
    if (!properties) return cudaErrorInvalidValue;
    DeviceProp12 later{};
    const cudaError_t failed = smt::cudart::cudaGetDeviceProperties_v2(&later, device);
    if (!failed) properties->set(later);
    return failed;
}

cudaError_t cudaPointerGetAttributes(PointerAttributes12* attributes, const void* pointer) {
    if (!attributes) return cudaErrorInvalidValue;
    cudaPointerAttributes today{};
    const cudaError_t failed = smt::cudart::cudaPointerGetAttributes(&today, pointer);
    if (!failed) attributes->set(today);
    return failed;
}

cudaError_t cudaFuncGetAttributes(FuncAttributes11* attributes, const RegisteredKernel& kernel) {
    if (!attributes) return cudaErrorInvalidValue;
    cudaFuncAttributes today{};
    const cudaError_t failed = smt::cudart::cudaFuncGetAttributes(&today, kernel);
    if (!failed) attributes->set(today);
    return failed;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    CUstream default_stream) {
    return smt::cudart::cudaGetDriverEntryPoint(symbol, function, flags, nullptr, default_stream);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                             size_t count, cudaGraphNodeParams* parameters) {
    return smt::cudart::cudaGraphAddNode(node, graph, before, nullptr, count, parameters);
}

// The driver says neither where it failed nor why in words.
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t* error_node,
                                 char* log, size_t log_bytes) {
    if (error_node) *error_node = nullptr;
    if (log && log_bytes) *log = '\0';
    return from_driver(driver().cuGraphInstantiateWithFlags(exec, graph, 0));
}

// Devices that lack doubles got floats; these left doubles as they are since CUDA 7.
cudaError_t cudaSetDoubleForDevice(double*) { return cudaSuccess; }
cudaError_t cudaSetDoubleForHost(double*) { return cudaSuccess; }

void __cudaRegisterSurface(void**, const surfaceReference*, const void**, const char*, int, int) {}
void __cudaRegisterTexture(void**, const textureReference*, const void**, const char*, int, int, int) {}

}  // namespace smt::cudart
