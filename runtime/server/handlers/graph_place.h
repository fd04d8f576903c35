// Where a graph node goes: added to a graph, changed in its graph, or changed in an executable one.
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

// Takes the dependencies, which follow the request in the record, and checks every handle.
// `Request` is one of GraphKernelNode, GraphCopyNode, GraphHostNode.
template <typename Request>
CUresult read_place(Call& call, const Request& request, NodePlace* place) {
    place->operation = request.operation;
    place->dependency_count = request.dependency_count;
    auto* dependencies = call.in.take(uint64_t{request.dependency_count} * sizeof(CUgraphNode));
    if (!call.in.good()) return CUDA_ERROR_INVALID_VALUE;
    place->dependencies = reinterpret_cast<const CUgraphNode*>(dependencies);
    if (request.operation == protocol::NodeOperation::kAdd) {
        place->graph = reinterpret_cast<CUgraph>(request.graph);
        for (size_t i = 0; i < place->dependency_count; ++i) {
            auto dependency = reinterpret_cast<uint64_t>(place->dependencies[i]);
            if (CUresult status = call.owned(HandleKind::kGraphNode, dependency)) return status;
        }
        return call.owned(HandleKind::kGraph, request.graph);
    }
    place->node = reinterpret_cast<CUgraphNode>(request.node);
    if (CUresult status = call.owned(HandleKind::kGraphNode, request.node)) return status;
    if (request.operation == protocol::NodeOperation::kSet) return CUDA_SUCCESS;
    if (request.operation != protocol::NodeOperation::kExecSet) return CUDA_ERROR_INVALID_VALUE;
    place->exec = reinterpret_cast<CUgraphExec>(request.graph);
    return call.owned(HandleKind::kGraphExec, request.graph);
}

// Answers with the node, which is the session's from now on if it is new.
inline CUresult answer_node(Call& call, const NodePlace& place, CUresult status) {
    if (status || place.operation != protocol::NodeOperation::kAdd) return status;
    call.adopt(HandleKind::kGraphNode, reinterpret_cast<uint64_t>(place.node));
    call.out.scalar(reinterpret_cast<uint64_t>(place.node));
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server::handlers
