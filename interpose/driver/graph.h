// Common parts of the graph calls. Graphs, nodes and executable graphs are ids of the server and pass through
// unchanged. Only references into the client's process are translated: functions, host memory, host
// functions, events.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/driver/refuse.h"
#include "interpose/transport/remote_call.h"
#include "runtime/protocol/layout.h"

namespace smt::interpose {

// The target of a node call: a node added to a graph, changed in it, or changed in an executable graph.
struct NodePlace {
    protocol::NodeOperation operation;
    uint64_t graph = 0;  // or the executable graph
    uint64_t node = 0;
    const CUgraphNode* dependencies = nullptr;
    size_t dependency_count = 0;

    static NodePlace add(CUgraph graph, const CUgraphNode* dependencies, size_t count) {
        return {protocol::NodeOperation::kAdd, reinterpret_cast<uint64_t>(graph), 0, dependencies, count};
    }
    static NodePlace set(CUgraphNode node) {
        return {protocol::NodeOperation::kSet, 0, reinterpret_cast<uint64_t>(node)};
    }
    static NodePlace set(CUgraphExec exec, CUgraphNode node) {
        return {protocol::NodeOperation::kExecSet, reinterpret_cast<uint64_t>(exec),
                reinterpret_cast<uint64_t>(node)};
    }

    CUresult check(const CUgraphNode* out) const {
        if (operation == protocol::NodeOperation::kAdd) {
            bool good = out && graph && (dependencies || dependency_count == 0);
            return good && dependency_count < protocol::kMaxRecordBytes ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_VALUE;
        }
        bool good = node && (graph || operation == protocol::NodeOperation::kSet);
        return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    uint64_t bytes() const { return dependency_count * sizeof(CUgraphNode); }
};

// Writes the dependencies, sends the record, and reads the id of an added node.
inline void in_dependencies(RemoteCall& call, const NodePlace& place) {
    if (place.dependency_count) call.in_bytes(place.dependencies, place.bytes());
}

inline CUresult finish_node(RemoteCall& call, CUgraphNode* out) {
    CUresult status = call.wait();
    if (status == CUDA_SUCCESS && out) call.out(out);
    return status;
}

}  // namespace smt::interpose
