// The target of a graph node request: add to a graph, change in its graph, or change in an executable graph.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "runtime/protocol/record.h"
#include "runtime/server/call.h"

namespace smt::runtime::server::handlers {

struct NodePlace {
    protocol::NodeOperation operation = protocol::NodeOperation::kAdd;
    CUgraph graph = nullptr;     // kAdd
    CUgraphExec exec = nullptr;  // kExecSet
    CUgraphNode node = nullptr;  // kSet and kExecSet; after kAdd the new one
    const CUgraphNode* dependencies = nullptr;
    size_t dependency_count = 0;
};

// Reads the dependencies, which follow the request in the record, and adds all objects to call.uses. `place`
// must not move until Uses::begin(). `Request` is one of GraphKernelNode, GraphCopyNode, GraphHostNode,
// GraphChildNode.
template <typename Request>
CUresult read_place(Call& call, const Request& request, NodePlace* place) {
    place->operation = request.operation;
    place->dependency_count = request.dependency_count;
    auto* dependencies = call.in.take(uint64_t{request.dependency_count} * sizeof(CUgraphNode));
    if (!call.in.good()) return CUDA_ERROR_INVALID_VALUE;
    place->dependencies = reinterpret_cast<const CUgraphNode*>(dependencies);
    if (request.operation == protocol::NodeOperation::kAdd) {
        place->graph = reinterpret_cast<CUgraph>(request.graph);
        call.uses.add(HandleKind::kGraphNode, place->dependencies, place->dependency_count);
        call.uses.add(HandleKind::kGraph, place->graph);
        return CUDA_SUCCESS;
    }
    place->node = reinterpret_cast<CUgraphNode>(request.node);
    call.uses.add(HandleKind::kGraphNode, place->node);
    if (request.operation == protocol::NodeOperation::kSet) return CUDA_SUCCESS;
    if (request.operation != protocol::NodeOperation::kExecSet) return CUDA_ERROR_INVALID_VALUE;
    place->exec = reinterpret_cast<CUgraphExec>(request.graph);
    call.uses.add(HandleKind::kGraphExec, place->exec);
    return CUDA_SUCCESS;
}

// Reads the node of a query.
CUresult read_node(Call& call, CUgraphNode* node);

// Replies with the node's id if the node is new.
inline CUresult answer_node(Call& call, const NodePlace& place, CUresult status) {
    if (status || place.operation != protocol::NodeOperation::kAdd) return status;
    CUgraphNode node = place.node;
    call.lend(HandleKind::kGraphNode, node, HandleKind::kGraph, place.graph);
    call.out.scalar(reinterpret_cast<uint64_t>(node));
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server::handlers
