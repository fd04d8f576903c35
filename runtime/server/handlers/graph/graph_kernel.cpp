// Kernel nodes of graphs: set and query.
#include <cstring>
#include <vector>

#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/handlers/code/launch_attributes.h"
#include "runtime/server/handlers/code/launch_constants.h"
#include "runtime/server/handlers/code/launch_entry.h"
#include "runtime/server/handlers/code/launch_parameters.h"
#include "runtime/server/handlers/graph/graph_place.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using protocol::NodeOperation;

namespace {

CUDA_KERNEL_NODE_PARAMS describe(const LoadedKernel& kernel, const protocol::Launch& launch, void** each) {
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = kernel.function;
    node.gridDimX = launch.grid[0];
    node.gridDimY = launch.grid[1];
    node.gridDimZ = launch.grid[2];
    node.blockDimX = launch.block[0];
    node.blockDimY = launch.block[1];
    node.blockDimZ = launch.block[2];
    node.sharedMemBytes = launch.shared_bytes;
    node.kernelParams = each;
    return node;
}

CUresult apply(const DriverApi& driver, NodePlace& place, const CUDA_KERNEL_NODE_PARAMS& node) {
    switch (place.operation) {
        case NodeOperation::kAdd:
            return driver.cuGraphAddKernelNode_v2(&place.node, place.graph, place.dependencies,
                                                  place.dependency_count, &node);
        case NodeOperation::kSet:
            return driver.cuGraphKernelNodeSetParams_v2(place.node, &node);
        case NodeOperation::kExecSet:
            return driver.cuGraphExecKernelNodeSetParams_v2(place.exec, place.node, &node);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

// The copy with doors is like the executable graph.
void change_copy(Call& call, const NodePlace& place, const CUDA_KERNEL_NODE_PARAMS& node) {
    if (place.operation != NodeOperation::kExecSet) return;
    call.session.graph_copies().changed(place.exec, place.node, [&](CUgraphNode cloned) {
        return call.driver.cuGraphKernelNodeSetParams_v2(cloned, &node);
    });
}

// Nodes of an executable graph have no attributes of their own.
CUresult apply_attributes(const DriverApi& driver, const NodePlace& place, const protocol::Launch& launch,
                          const CUlaunchAttribute* attributes) {
    if (place.operation == NodeOperation::kExecSet) return CUDA_SUCCESS;
    for (uint32_t i = 0; i < launch.attribute_count; ++i) {
        CUlaunchAttribute attribute = attributes[i];
        if (CUresult status =
                driver.cuGraphKernelNodeSetAttribute(place.node, attribute.id, &attribute.value))
            return status;
    }
    if (!(launch.flags & protocol::kLaunchCooperative)) return CUDA_SUCCESS;
    CUlaunchAttributeValue cooperative{};
    cooperative.cooperative = 1;
    return driver.cuGraphKernelNodeSetAttribute(place.node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative);
}

// Packs the node's parameters into one buffer. False: some are missing.
bool pack(const LoadedKernel& kernel, const CUDA_KERNEL_NODE_PARAMS& node, std::vector<char>& buffer) {
    buffer.assign(kernel.parameter_bytes, 0);
    if (buffer.empty()) return true;
    if (node.kernelParams) {
        for (size_t i = 0; i < kernel.parameters.size(); ++i) {
            const protocol::ParameterInfo& parameter = kernel.parameters[i];
            std::memcpy(buffer.data() + parameter.offset, node.kernelParams[i], parameter.bytes);
        }
        return true;
    }
    const void* whole = nullptr;
    size_t bytes = 0;
    for (void** extra = node.extra; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) whole = extra[1];
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<size_t*>(extra[1]);
    }
    if (!whole || bytes < buffer.size()) return false;
    std::memcpy(buffer.data(), whole, buffer.size());
    return true;
}

}  // namespace

CUresult handle_graph_kernel_node(Call& call) {
    auto request = call.in.scalar<protocol::GraphKernelNode>();
    NodePlace place;
    SMT_TRY(read_place(call, request, &place));
    const protocol::Launch& launch = request.launch;
    auto* attributes = reinterpret_cast<const CUlaunchAttribute*>(
        call.in.take(uint64_t{launch.attribute_count} * sizeof(CUlaunchAttribute)));
    char* parameters = const_cast<char*>(call.in.take(launch.parameter_bytes));
    if (!call.in.good()) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(check_launch_attributes(attributes, launch.attribute_count));
    SMT_TRY(call.uses.begin());
    KernelUse kernel(call.session.code(), launch.function);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    if (launch.parameter_bytes < kernel->parameter_bytes || !may_launch_with(call, *kernel, parameters))
        return CUDA_ERROR_INVALID_VALUE;

    ParameterList each(*kernel, parameters);
    if (kernel->prints) call.session.code().graphs_print().store(true);
    const CUDA_KERNEL_NODE_PARAMS node = describe(*kernel, launch, each.data());
    CUresult status = apply(call.driver, place, node);
    if (status == CUDA_SUCCESS) change_copy(call, place, node);
    if (status == CUDA_SUCCESS) status = apply_attributes(call.driver, place, launch, attributes);
    if (status == CUDA_SUCCESS && place.operation == NodeOperation::kAdd)
        note_into_graph(call, *kernel, launch);
    if (status && place.operation == NodeOperation::kAdd && place.node)
        call.driver.cuGraphDestroyNode(place.node);
    return answer_node(call, place, status);
}

CUresult handle_graph_kernel_node_get(Call& call) {
    CUgraphNode node = nullptr;
    SMT_TRY(read_node(call, &node));
    CUDA_KERNEL_NODE_PARAMS set{};
    CUresult status = call.driver.cuGraphKernelNodeGetParams_v2(node, &set);
    if (status) return status;
    const LoadedKernel* kernel = call.session.code().find(set.func, set.kern);
    std::vector<char> buffer;
    if (!kernel || !pack(*kernel, set, buffer)) return CUDA_ERROR_INVALID_VALUE;
    protocol::GraphKernelNode answer{};
    answer.graph = call.session.handles().root(HandleKind::kGraphNode, reinterpret_cast<uint64_t>(node));
    answer.launch.function = kernel->id;
    const uint32_t grid[3] = {set.gridDimX, set.gridDimY, set.gridDimZ};
    const uint32_t block[3] = {set.blockDimX, set.blockDimY, set.blockDimZ};
    std::memcpy(answer.launch.grid, grid, sizeof(grid));
    std::memcpy(answer.launch.block, block, sizeof(block));
    answer.launch.shared_bytes = set.sharedMemBytes;
    answer.launch.parameter_bytes = static_cast<uint32_t>(buffer.size());
    call.out.scalar(answer);
    call.out.bytes(buffer.data(), buffer.size());
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server::handlers
