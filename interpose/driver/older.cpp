// Older versions of entry points, implemented by the newer ones.
#include "driver.gen.h"
#include "interpose/driver/objects.h"

namespace smt::interpose::driver {

namespace {

CUmemLocation place_of(CUdevice device) {
    CUmemLocation location{};
    location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device == CU_DEVICE_CPU ? 0 : device;
    return location;
}

CUDA_KERNEL_NODE_PARAMS newer(const CUDA_KERNEL_NODE_PARAMS_v1& from) {
    CUDA_KERNEL_NODE_PARAMS to{};
    to.func = from.func;
    to.gridDimX = from.gridDimX;
    to.gridDimY = from.gridDimY;
    to.gridDimZ = from.gridDimZ;
    to.blockDimX = from.blockDimX;
    to.blockDimY = from.blockDimY;
    to.blockDimZ = from.blockDimZ;
    to.sharedMemBytes = from.sharedMemBytes;
    to.kernelParams = from.kernelParams;
    to.extra = from.extra;
    return to;
}

CUDA_KERNEL_NODE_PARAMS_v1 older(const CUDA_KERNEL_NODE_PARAMS& from) {
    CUDA_KERNEL_NODE_PARAMS_v1 to{};
    // In smt a kernel is the same object as its function.
    to.func = from.func ? from.func : reinterpret_cast<CUfunction>(from.kern);
    to.gridDimX = from.gridDimX;
    to.gridDimY = from.gridDimY;
    to.gridDimZ = from.gridDimZ;
    to.blockDimX = from.blockDimX;
    to.blockDimY = from.blockDimY;
    to.blockDimZ = from.blockDimZ;
    to.sharedMemBytes = from.sharedMemBytes;
    to.kernelParams = from.kernelParams;
    to.extra = from.extra;
    return to;
}

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
    return driver::cuCtxCreate_v4(context, nullptr, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned int flags,
                        CUdevice device) {
    CUctxCreateParams parameters{};
    parameters.execAffinityParams = affinity;
    parameters.numExecAffinityParams = count;
    return driver::cuCtxCreate_v4(context, count ? &parameters : nullptr, flags, device);
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
    if (green) *green = nullptr;
    return driver::cuStreamGetCtx(stream, context);
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
    return driver::cuMemPrefetchAsync_v2(address, bytes, place_of(device), 0, stream);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
    return driver::cuMemAdvise_v2(address, bytes, advice, place_of(device));
}

CUresult cuStreamBeginCapture(CUstream stream) {
    return driver::cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
    return driver::cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
    return driver::cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count,
                                           unsigned int flags) {
    return driver::cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeParams* parameters) {
    return driver::cuGraphAddNode_v2(node, graph, dependencies, nullptr, count, parameters);
}

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS now = newer(*parameters);
    return driver::cuGraphAddKernelNode_v2(node, graph, dependencies, count, &now);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS now{};
    const CUresult result = driver::cuGraphKernelNodeGetParams_v2(node, &now);
    if (result == CUDA_SUCCESS) *parameters = older(now);
    return result;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS now = newer(*parameters);
    return driver::cuGraphKernelNodeSetParams_v2(node, &now);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_KERNEL_NODE_PARAMS now = newer(*parameters);
    return driver::cuGraphExecKernelNodeSetParams_v2(exec, node, &now);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* why) {
    CUgraphExecUpdateResultInfo info{};
    const CUresult result = driver::cuGraphExecUpdate_v2(exec, graph, &info);
    if (error_node) *error_node = info.errorNode;
    if (why) *why = info.result;
    return result;
}

}  // namespace smt::interpose::driver
