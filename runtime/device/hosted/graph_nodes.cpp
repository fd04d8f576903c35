// The nodes of graphs: made, asked about, changed.
#include "runtime/device/hosted/graph_nodes.h"

#include "runtime/device/hosted/backend.h"

using namespace smt::runtime::device::hosted;

namespace {

Work work_of(const Node& node) {
    switch (node.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return nullptr;  // the backend runs it
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return copy_work(node.copy);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return fill_work(node.fill);
        case CU_GRAPH_NODE_TYPE_HOST:
            return [host = node.host] { host.fn(host.userData); };
        default:
            return node.work;
    }
}

std::unique_ptr<Node> make(CUgraphNodeType type) {
    auto node = std::make_unique<Node>();
    node->type = type;
    return node;
}

CUresult add(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             std::unique_ptr<Node> node) {
    if (!handle || !are_of(graph_of(graph), dependencies, count)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) node->after.push_back(node_of(dependencies[i]));
    node->work = work_of(*node);
    Lock lock(world());
    *handle = handle_of(graph_of(graph)->add(std::move(node)));
    return CUDA_SUCCESS;
}

bool has_element(const CUDA_MEMSET_NODE_PARAMS& fill) {
    return fill.elementSize == 1 || fill.elementSize == 2 || fill.elementSize == 4;
}

// All tenants share the table of executable graphs.
Node* find_in_exec(CUgraphExec exec, CUgraphNode node) {
    Lock lock(world());
    return in_exec(exec, node);
}

CUresult set_kernel(Node* node, const CUDA_KERNEL_NODE_PARAMS& parameters) {
    const CUfunction function =
        parameters.func ? parameters.func : reinterpret_cast<CUfunction>(parameters.kern);
    Launch launch{function,
                  {parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ},
                  {parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ},
                  parameters.sharedMemBytes};
    // A node keeps its attributes.
    launch.has_priority = node->launch.has_priority;
    launch.priority = node->launch.priority;
    launch.cooperative = node->launch.cooperative;
    launch.places = node->launch.places;
    CUresult status = pack(function, parameters.kernelParams, parameters.extra, &launch.parameters);
    if (status == CUDA_SUCCESS) status = backend().check(launch);
    if (status != CUDA_SUCCESS) return status;
    Lock lock(world());
    node->launch = std::move(launch);
    node->work = work_of(*node);
    return CUDA_SUCCESS;
}

}  // namespace

DRIVER_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                           size_t count) {
    DRIVER_ASKED(cuGraphAddEmptyNode);
    return add(node, graph, dependencies, count, make(CU_GRAPH_NODE_TYPE_EMPTY));
}
DRIVER_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode* handle, CUgraph graph,
                                               const CUgraphNode* dependencies, size_t count,
                                               const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphAddKernelNode_v2);
    auto node = make(CU_GRAPH_NODE_TYPE_KERNEL);
    if (CUresult status = set_kernel(node.get(), *parameters); status != CUDA_SUCCESS) return status;
    return add(handle, graph, dependencies, count, std::move(node));
}
DRIVER_EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                                     const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphKernelNodeSetParams_v2);
    return set_kernel(node_of(node), *parameters);
}
DRIVER_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle,
                                                     CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphKernelNodeGetParams_v2);
    Node& node = *node_of(handle);
    *parameters = {};
    parameters->func = node.launch.function;
    parameters->gridDimX = node.launch.grid[0];
    parameters->gridDimY = node.launch.grid[1];
    parameters->gridDimZ = node.launch.grid[2];
    parameters->blockDimX = node.launch.block[0];
    parameters->blockDimY = node.launch.block[1];
    parameters->blockDimZ = node.launch.block[2];
    parameters->sharedMemBytes = node.launch.shared_bytes;
    node.parameter_pointers.clear();
    size_t offset = 0, bytes = 0;
    for (size_t i = 0; cuFuncGetParamInfo(node.launch.function, i, &offset, &bytes) == CUDA_SUCCESS; ++i) {
        if (offset + bytes > node.launch.parameters.size())
            return CUDA_ERROR_INVALID_VALUE;  // the handle is another kernel's now
        node.parameter_pointers.push_back(node.launch.parameters.data() + offset);
    }
    parameters->kernelParams = node.parameter_pointers.data();
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                                     CUkernelNodeAttrValue* value) {
    if (!value || node_of(node)->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
    const Launch& launch = node_of(node)->launch;
    *value = {};
    switch (attribute) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            value->cooperative = launch.cooperative;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            value->priority = launch.priority;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            value->clusterDim.x = value->clusterDim.y = value->clusterDim.z = 1;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}
DRIVER_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode handle,
                                                         const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphExecKernelNodeSetParams_v2);
    Node* node = find_in_exec(exec, handle);
    return node ? set_kernel(node, *parameters) : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode* handle, CUgraph graph,
                                            const CUgraphNode* dependencies, size_t count,
                                            const CUDA_MEMCPY3D* copy, CUcontext) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphAddMemcpyNode);
    auto node = make(CU_GRAPH_NODE_TYPE_MEMCPY);
    node->copy = *copy;
    return add(handle, graph, dependencies, count, std::move(node));
}
DRIVER_EXPORT CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    *copy = node_of(node)->copy;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode handle, const CUDA_MEMCPY3D* copy) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphMemcpyNodeSetParams);
    Lock lock(world());
    node_of(handle)->copy = *copy;
    node_of(handle)->work = work_of(*node_of(handle));
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                                      const CUDA_MEMCPY3D* copy, CUcontext) {
    DRIVER_ASKED(cuGraphExecMemcpyNodeSetParams);
    Node* node = find_in_exec(exec, handle);
    return node ? cuGraphMemcpyNodeSetParams(handle_of(node), copy) : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode* handle, CUgraph graph,
                                            const CUgraphNode* dependencies, size_t count,
                                            const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext) {
    if (!fill || !has_element(*fill)) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphAddMemsetNode);
    auto node = make(CU_GRAPH_NODE_TYPE_MEMSET);
    node->fill = *fill;
    return add(handle, graph, dependencies, count, std::move(node));
}
DRIVER_EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* fill) {
    if (!fill) return CUDA_ERROR_INVALID_VALUE;
    *fill = node_of(node)->fill;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS* fill) {
    if (!fill || !has_element(*fill)) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphMemsetNodeSetParams);
    Lock lock(world());
    node_of(handle)->fill = *fill;
    node_of(handle)->work = work_of(*node_of(handle));
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                                      const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext) {
    DRIVER_ASKED(cuGraphExecMemsetNodeSetParams);
    Node* node = find_in_exec(exec, handle);
    return node ? cuGraphMemsetNodeSetParams(handle_of(node), fill) : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGraphAddHostNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                                          size_t count, const CUDA_HOST_NODE_PARAMS* host) {
    if (!host) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphAddHostNode);
    auto node = make(CU_GRAPH_NODE_TYPE_HOST);
    node->host = *host;
    return add(handle, graph, dependencies, count, std::move(node));
}
DRIVER_EXPORT CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* host) {
    if (!host) return CUDA_ERROR_INVALID_VALUE;
    *host = node_of(node)->host;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphHostNodeSetParams(CUgraphNode handle, const CUDA_HOST_NODE_PARAMS* host) {
    if (!host) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphHostNodeSetParams);
    Lock lock(world());
    node_of(handle)->host = *host;
    node_of(handle)->work = work_of(*node_of(handle));
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                                    const CUDA_HOST_NODE_PARAMS* host) {
    DRIVER_ASKED(cuGraphExecHostNodeSetParams);
    Node* node = find_in_exec(exec, handle);
    return node ? cuGraphHostNodeSetParams(handle_of(node), host) : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode* handle, CUgraph graph,
                                                const CUgraphNode* dependencies, size_t count,
                                                CUgraph child) {
    DRIVER_ASKED(cuGraphAddChildGraphNode);
    if (!handle || !are_of(graph_of(graph), dependencies, count)) return CUDA_ERROR_INVALID_VALUE;
    auto node = make(CU_GRAPH_NODE_TYPE_GRAPH);
    std::unordered_map<const Node*, Node*> of;
    Lock lock(world());
    if (!has_room(*graph_of(graph), *graph_of(child))) return CUDA_ERROR_OUT_OF_MEMORY;
    node->child = clone(*graph_of(child), &of);
    lock.unlock();
    return add(handle, graph, dependencies, count, std::move(node));
}
DRIVER_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    *graph = reinterpret_cast<CUgraph>(node_of(node)->child.get());
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

namespace {

CUresult add_event(CUgraphNodeType type, CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                   size_t count, CUevent event) {
    Lock lock(world());
    auto node = event_node(type, event);
    lock.unlock();
    if (!node) return CUDA_ERROR_INVALID_HANDLE;
    return add(handle, graph, dependencies, count, std::move(node));
}

CUresult set_event(CUgraphNodeType type, CUgraphExec exec, CUgraphNode handle, CUevent event) {
    Lock lock(world());
    Node* const node = in_exec(exec, handle);
    if (!node || node->type != type) return CUDA_ERROR_INVALID_VALUE;
    if (!event_node(type, event)) return CUDA_ERROR_INVALID_HANDLE;
    node->event = event;
    return CUDA_SUCCESS;
}

CUresult get_event(CUgraphNodeType type, CUgraphNode handle, CUevent* event) {
    if (!event || node_of(handle)->type != type) return CUDA_ERROR_INVALID_VALUE;
    *event = node_of(handle)->event;
    return CUDA_SUCCESS;
}

}  // namespace

DRIVER_EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph,
                                                 const CUgraphNode* dependencies, size_t count,
                                                 CUevent event) {
    DRIVER_ASKED(cuGraphAddEventRecordNode);
    return add_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, node, graph, dependencies, count, event);
}
DRIVER_EXPORT CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph,
                                               const CUgraphNode* dependencies, size_t count, CUevent event) {
    DRIVER_ASKED(cuGraphAddEventWaitNode);
    return add_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, node, graph, dependencies, count, event);
}
DRIVER_EXPORT CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
    return get_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, node, event);
}
DRIVER_EXPORT CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
    return get_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, node, event);
}
DRIVER_EXPORT CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
    DRIVER_ASKED(cuGraphExecEventRecordNodeSetEvent);
    return set_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, exec, node, event);
}
DRIVER_EXPORT CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
    DRIVER_ASKED(cuGraphExecEventWaitNodeSetEvent);
    return set_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, exec, node, event);
}

// In the general form there are child graphs only, because no other call hands a graph over.
DRIVER_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                                         const CUgraphEdgeData*, size_t count,
                                         CUgraphNodeParams* parameters) {
    if (!handle || !parameters) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphAddNode_v2, "type=%d", parameters->type);
    if (parameters->type != CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_NOT_SUPPORTED;
    if (parameters->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        return cuGraphAddChildGraphNode(handle, graph, dependencies, count, parameters->graph.graph);
    if (parameters->graph.graph == graph || !are_of(graph_of(graph), dependencies, count))
        return CUDA_ERROR_INVALID_VALUE;
    auto node = make(CU_GRAPH_NODE_TYPE_GRAPH);
    {
        Lock lock(world());
        node->child = take_graph(parameters->graph.graph);
    }
    if (!node->child) return CUDA_ERROR_INVALID_VALUE;
    return add(handle, graph, dependencies, count, std::move(node));
}
