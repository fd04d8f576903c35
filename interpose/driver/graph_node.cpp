// The generic forms of the node calls: one struct for every type of node. Each type is forwarded to its own
// call; types without one are refused and counted.
#include <cstring>

#include "driver.gen.h"
#include "interpose/driver/graph.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

namespace {

// v2 and v3 of the kernel node's parameters differ in name only.
const CUDA_KERNEL_NODE_PARAMS* kernel_of(const CUgraphNodeParams& params) {
    static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == sizeof(CUDA_KERNEL_NODE_PARAMS_v3));
    return reinterpret_cast<const CUDA_KERNEL_NODE_PARAMS*>(&params.kernel);
}

const CUDA_HOST_NODE_PARAMS* host_of(const CUgraphNodeParams& params) {
    static_assert(sizeof(CUDA_HOST_NODE_PARAMS) == sizeof(CUDA_HOST_NODE_PARAMS_v2));
    return reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(&params.host);
}

CUDA_MEMSET_NODE_PARAMS memset_of(const CUgraphNodeParams& params) {
    const CUDA_MEMSET_NODE_PARAMS_v2& from = params.memset;
    return {from.dst, from.pitch, from.value, from.elementSize, from.width, from.height};
}

CUresult add_node(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                  CUgraphNodeParams& params) {
    switch (params.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return driver::cuGraphAddKernelNode_v2(out, graph, dependencies, count, kernel_of(params));
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return driver::cuGraphAddMemcpyNode(out, graph, dependencies, count, &params.memcpy.copyParams,
                                                params.memcpy.copyCtx);
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            CUDA_MEMSET_NODE_PARAMS memset = memset_of(params);
            return driver::cuGraphAddMemsetNode(out, graph, dependencies, count, &memset, params.memset.ctx);
        }
        case CU_GRAPH_NODE_TYPE_HOST:
            return driver::cuGraphAddHostNode(out, graph, dependencies, count, host_of(params));
        case CU_GRAPH_NODE_TYPE_GRAPH:
            if (params.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
                return refuse("cuGraphAddNode_v2");
            if (CUresult status =
                    driver::cuGraphAddChildGraphNode(out, graph, dependencies, count, params.graph.graph))
                return status;
            return driver::cuGraphChildGraphNodeGetGraph(*out, &params.graph.graph);
        case CU_GRAPH_NODE_TYPE_EMPTY:
            return driver::cuGraphAddEmptyNode(out, graph, dependencies, count);
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return driver::cuGraphAddEventWaitNode(out, graph, dependencies, count, params.eventWait.event);
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return driver::cuGraphAddEventRecordNode(out, graph, dependencies, count,
                                                     params.eventRecord.event);
        default:
            return refuse("cuGraphAddNode_v2");
    }
}

bool plain(const CUgraphEdgeData* edges, size_t count) {
    const CUgraphEdgeData none = {};
    for (size_t i = 0; i < count; ++i)
        if (std::memcmp(&edges[i], &none, sizeof(none)) != 0) return false;
    return true;
}

// Adds edges with data after the node; if they are refused, removes the node again.
CUresult add_edges(CUgraph graph, CUgraphNode node, const CUgraphNode* dependencies,
                   const CUgraphEdgeData* edges, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        CUresult status = driver::cuGraphAddDependencies_v2(graph, &dependencies[i], &node, &edges[i], 1);
        if (status == CUDA_SUCCESS) continue;
        driver::cuGraphDestroyNode(node);
        return status;
    }
    return CUDA_SUCCESS;
}

// The node takes ownership of the graph, so it cannot be added first and removed if its edges are refused.
// The edges therefore travel in the same record.
CUresult move_child(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                    const CUgraphEdgeData* edges, size_t count, CUgraph child) {
    using namespace protocol;
    const NodePlace place = NodePlace::add(graph, dependencies, count);
    SMT_TRY(place.check(out));
    if (!child) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t edge_bytes = edges ? count * sizeof(CUgraphEdgeData) : 0;
    RemoteCall call(Op::kGraphChildNode, sizeof(GraphChildNode) + place.bytes() + edge_bytes);
    if (!call.open()) return call.status();
    call.in(GraphChildNode{place.operation, static_cast<uint32_t>(count), place.graph, 0,
                           reinterpret_cast<uint64_t>(child), edges ? 1u : 0u, 0});
    in_dependencies(call, place);
    if (edge_bytes) call.in_bytes(edges, edge_bytes);
    return finish_node(call, out);
}

}  // namespace

CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* dependencyData, size_t numDependencies,
                           CUgraphNodeParams* nodeParams) {
    if (!phGraphNode || !nodeParams || (numDependencies && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
    if (nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH &&
        nodeParams->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        return move_child(phGraphNode, hGraph, dependencies, numDependencies ? dependencyData : nullptr,
                          numDependencies, nodeParams->graph.graph);
    if (!dependencyData || plain(dependencyData, numDependencies))
        return add_node(phGraphNode, hGraph, dependencies, numDependencies, *nodeParams);
    SMT_TRY(add_node(phGraphNode, hGraph, nullptr, 0, *nodeParams));
    return add_edges(hGraph, *phGraphNode, dependencies, dependencyData, numDependencies);
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    switch (nodeParams->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return driver::cuGraphKernelNodeSetParams_v2(hNode, kernel_of(*nodeParams));
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return driver::cuGraphMemcpyNodeSetParams(hNode, &nodeParams->memcpy.copyParams);
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            CUDA_MEMSET_NODE_PARAMS memset = memset_of(*nodeParams);
            return driver::cuGraphMemsetNodeSetParams(hNode, &memset);
        }
        case CU_GRAPH_NODE_TYPE_HOST:
            return driver::cuGraphHostNodeSetParams(hNode, host_of(*nodeParams));
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return driver::cuGraphEventWaitNodeSetEvent(hNode, nodeParams->eventWait.event);
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return driver::cuGraphEventRecordNodeSetEvent(hNode, nodeParams->eventRecord.event);
        default:
            return refuse("cuGraphNodeSetParams");
    }
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
    if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
    switch (nodeParams->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return driver::cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, kernel_of(*nodeParams));
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return driver::cuGraphExecMemcpyNodeSetParams(hGraphExec, hNode, &nodeParams->memcpy.copyParams,
                                                          nodeParams->memcpy.copyCtx);
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            CUDA_MEMSET_NODE_PARAMS memset = memset_of(*nodeParams);
            return driver::cuGraphExecMemsetNodeSetParams(hGraphExec, hNode, &memset, nodeParams->memset.ctx);
        }
        case CU_GRAPH_NODE_TYPE_HOST:
            return driver::cuGraphExecHostNodeSetParams(hGraphExec, hNode, host_of(*nodeParams));
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return driver::cuGraphExecChildGraphNodeSetParams(hGraphExec, hNode, nodeParams->graph.graph);
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return driver::cuGraphExecEventWaitNodeSetEvent(hGraphExec, hNode, nodeParams->eventWait.event);
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return driver::cuGraphExecEventRecordNodeSetEvent(hGraphExec, hNode,
                                                              nodeParams->eventRecord.event);
        default:
            return refuse("cuGraphExecNodeSetParams");
    }
}

}  // namespace smt::interpose::driver
