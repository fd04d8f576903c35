// Graph nodes with parameters that differ between runtime and driver: kernels, which the program names by
// their host side, and copies, which use other units.
#include <string.h>

#include "cudart_written.gen.h"
#include "runtime/device/simulated/cudart/convert.h"
#include "runtime/device/simulated/cudart/copy_plan.h"

namespace smt::cudart {

namespace {

// All kernel node structs share one prefix: func, grid, block, shared bytes, parameters, extra.
template <typename Params>
cudaError_t driver_kernel(const Params& from, CUDA_KERNEL_NODE_PARAMS& made) {
    RegisteredKernel kernel{};
    if (cudaError_t failed = find_kernel(from.func, kernel)) return failed;
    made = {};
    made.func = kernel.function;
    made.gridDimX = from.gridDim.x;
    made.gridDimY = from.gridDim.y;
    made.gridDimZ = from.gridDim.z;
    made.blockDimX = from.blockDim.x;
    made.blockDimY = from.blockDim.y;
    made.blockDimZ = from.blockDim.z;
    made.sharedMemBytes = from.sharedMemBytes;
    made.kernelParams = from.kernelParams;
    made.extra = from.extra;
    return cudaSuccess;
}

cudaError_t kernel_params(const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS& made) {
    return from ? driver_kernel(*from, made) : cudaErrorInvalidValue;
}

// Both unions hold the same kinds of node; three of them differ in layout.
cudaError_t driver_node(const cudaGraphNodeParams* from, CUgraphNodeParams& made) {
    if (!from) return cudaErrorInvalidValue;
    static_assert(sizeof made == sizeof *from);
    memcpy(&made, from, sizeof made);
    if (from->type == cudaGraphNodeTypeKernel) {
        CUDA_KERNEL_NODE_PARAMS kernel;
        if (cudaError_t failed = driver_kernel(from->kernel, kernel)) return failed;
        static_assert(sizeof kernel == sizeof made.kernel);
        memcpy(&made.kernel, &kernel, sizeof kernel);
    } else if (from->type == cudaGraphNodeTypeMemcpy) {
        Copy copy = shaped_copy(&from->memcpy.copyParams);
        if (copy.error != cudaSuccess) return copy.error;
        memset(&made.memcpy, 0, sizeof made.memcpy);
        made.memcpy.flags = from->memcpy.flags;
        made.memcpy.copyCtx = current();
        made.memcpy.copyParams = copy.plan;
    } else if (from->type == cudaGraphNodeTypeMemset) {
        made.memset.ctx = current();
    } else if (from->type == cudaGraphNodeTypeConditional) {
        made.conditional.ctx = current();
    }
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                   size_t count, const cudaKernelNodeParams* parameters) {
    CUDA_KERNEL_NODE_PARAMS made;
    if (cudaError_t failed = kernel_params(parameters, made)) return failed;
    return from_driver(driver().cuGraphAddKernelNode_v2(node, graph, before, count, &made));
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
    CUDA_KERNEL_NODE_PARAMS made;
    if (cudaError_t failed = kernel_params(parameters, made)) return failed;
    return from_driver(driver().cuGraphKernelNodeSetParams_v2(node, &made));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
    CUDA_KERNEL_NODE_PARAMS made;
    if (cudaError_t failed = kernel_params(parameters, made)) return failed;
    return from_driver(driver().cuGraphExecKernelNodeSetParams_v2(graph, node, &made));
}

// The kernel's host side where it has one; else the driver's handle, which every call accepts too.
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* parameters) {
    if (!parameters) return cudaErrorInvalidValue;
    CUDA_KERNEL_NODE_PARAMS found{};
    if (CUresult status = driver().cuGraphKernelNodeGetParams_v2(node, &found)) return from_driver(status);
    const void* host = host_side(found.func);
    void* handle = found.func ? static_cast<void*>(found.func) : static_cast<void*>(found.kern);
    parameters->func = host ? const_cast<void*>(host) : handle;
    parameters->gridDim = dim3(found.gridDimX, found.gridDimY, found.gridDimZ);
    parameters->blockDim = dim3(found.blockDimX, found.blockDimY, found.blockDimZ);
    parameters->sharedMemBytes = found.sharedMemBytes;
    parameters->kernelParams = found.kernelParams;
    parameters->extra = found.extra;
    return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* parameters) {
    CUDA_MEMCPY3D found{};
    if (CUresult status = driver().cuGraphMemcpyNodeGetParams(node, &found)) return from_driver(status);
    return describe(found, parameters);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                             const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters) {
    CUgraphNodeParams made;
    if (cudaError_t failed = driver_node(parameters, made)) return failed;
    CUresult status = driver().cuGraphAddNode_v2(node, graph, before, as_driver(edges), count, &made);
    if (status == CUDA_SUCCESS && parameters->type == cudaGraphNodeTypeConditional)
        parameters->conditional.phGraph_out = made.conditional.phGraph_out;
    return from_driver(status);
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* parameters) {
    CUgraphNodeParams made;
    if (cudaError_t failed = driver_node(parameters, made)) return failed;
    return from_driver(driver().cuGraphNodeSetParams(node, &made));
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                       cudaGraphNodeParams* parameters) {
    CUgraphNodeParams made;
    if (cudaError_t failed = driver_node(parameters, made)) return failed;
    return from_driver(driver().cuGraphExecNodeSetParams(graph, node, &made));
}

}  // namespace smt::cudart
