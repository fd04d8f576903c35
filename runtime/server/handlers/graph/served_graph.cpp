// Graph calls whose parameters need a check or a translation: attributes, user objects. Calls that change
// what a graph waits for (graph_waits.h), or what its copy with doors is like (graph_copies.h).
#include <memory>
#include <vector>

#include "runtime/server/callbacks.h"
#include "runtime/server/session.h"
#include "runtime/server/streams.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

// Attributes that contain an event or a node of the client are refused.
CUresult cuGraphKernelNodeSetAttribute(Call& call, CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue* value) {
    switch (attribute) {
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            break;
    }
    if (!call.driver.cuGraphKernelNodeSetAttribute) return CUDA_ERROR_NOT_SUPPORTED;
    return call.driver.cuGraphKernelNodeSetAttribute(node, attribute, value);
}

// User objects. The destructor is the application's code, so the driver gets the server's own destructor,
// which makes the application's callback thread call it. The driver may call it late, on a thread of its own,
// after the session has ended. A weak reference to the legacy stream, which exists as long as the session,
// detects that.
namespace {

constexpr unsigned int kMostReferences = 1u << 16;  // in one call

struct Destructor {
    std::weak_ptr<Stream> session;
    CUDA_HOST_NODE_PARAMS ours;
};

void run_destructor(void* data) {
    std::unique_ptr<Destructor> destructor(static_cast<Destructor*>(data));
    if (destructor->session.lock()) destructor->ours.fn(destructor->ours.userData);
}

}  // namespace

CUresult cuUserObjectCreate(Call& call, CUuserObject* object, void* data, CUhostFn destroy,
                            unsigned int references, unsigned int flags) {
    if (!object || !destroy || references == 0 || references > kMostReferences)
        return CUDA_ERROR_INVALID_VALUE;
    if (!call.driver.cuUserObjectCreate) return CUDA_ERROR_NOT_SUPPORTED;
    auto destructor = std::make_unique<Destructor>();
    destructor->session = call.session.streams().legacy();
    destructor->ours =
        call.session.callbacks().node(reinterpret_cast<uint64_t>(destroy), reinterpret_cast<uint64_t>(data));
    if (!destructor->ours.fn) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status =
        call.driver.cuUserObjectCreate(object, destructor.get(), run_destructor, references, flags);
    if (status != CUDA_SUCCESS) return status;
    (void)destructor.release();  // run_destructor deletes it
    call.session.handles().adopt(HandleKind::kUserObject, reinterpret_cast<uint64_t>(*object));
    call.session.handles().add_references(*object, references - 1);
    return CUDA_SUCCESS;
}

// A caller that retains or passes on a reference must own one, which keeps the object alive during the call.
// References of the session's graphs are not the caller's.
CUresult cuUserObjectRetain(Call& call, CUuserObject object, unsigned int count) {
    Handles& handles = call.session.handles();
    if (count == 0 || count > kMostReferences || !handles.has_references(object, 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (!call.driver.cuUserObjectRetain) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuUserObjectRetain(object, count);
    if (status == CUDA_SUCCESS) handles.add_references(object, count);
    return status;
}

CUresult cuUserObjectRelease(Call& call, CUuserObject object, unsigned int count) {
    if (!call.driver.cuUserObjectRelease) return CUDA_ERROR_NOT_SUPPORTED;
    if (count == 0 || !call.session.handles().take_references(object, count)) return CUDA_ERROR_INVALID_VALUE;
    return call.driver.cuUserObjectRelease(object, count);
}

// MOVE transfers the caller's references to the graph.
CUresult cuGraphRetainUserObject(Call& call, CUgraph graph, CUuserObject object, unsigned int count,
                                 unsigned int flags) {
    Handles& handles = call.session.handles();
    const bool move = flags & CU_GRAPH_USER_OBJECT_MOVE;
    if (count == 0 || count > kMostReferences || !handles.has_references(object, move ? count : 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (!call.driver.cuGraphRetainUserObject) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuGraphRetainUserObject(graph, object, count, flags);
    if (status == CUDA_SUCCESS) handles.give_to_graph(object, graph, count, move);
    return status;
}

CUresult cuGraphReleaseUserObject(Call& call, CUgraph graph, CUuserObject object, unsigned int count) {
    if (!call.driver.cuGraphReleaseUserObject) return CUDA_ERROR_NOT_SUPPORTED;
    if (count == 0 || !call.session.handles().take_from_graph(object, graph, count))
        return CUDA_ERROR_INVALID_VALUE;
    return call.driver.cuGraphReleaseUserObject(graph, object, count);
}

CUresult cuGraphClone(Call& call, CUgraph* copy, CUgraph graph) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    if (!call.driver.cuGraphClone) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuGraphClone(copy, graph);
    if (status != CUDA_SUCCESS) return status;
    call.session.handles().adopt(HandleKind::kGraph, reinterpret_cast<uint64_t>(*copy));
    call.session.handles().copy_references(graph, *copy);
    return CUDA_SUCCESS;
}

// A failed call may report the node that caused the error, in the graph or in one of its child graphs.
namespace {

std::vector<CUgraphNode> nodes_of(Call& call, CUgraph graph) {
    size_t count = 0;
    if (call.driver.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return {};
    std::vector<CUgraphNode> nodes(count);
    if (call.driver.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return {};
    nodes.resize(count);
    return nodes;
}

void learn_nodes(Call& call, CUgraph top) {
    std::vector<CUgraph> left{top};
    while (!left.empty()) {
        const CUgraph graph = left.back();
        left.pop_back();
        for (const CUgraphNode node : nodes_of(call, graph)) {
            CUgraphNode id = node;
            call.lend(HandleKind::kGraphNode, id, HandleKind::kGraph, graph);
            CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
            CUgraph child = nullptr;
            const bool has_child = call.driver.cuGraphNodeGetType(node, &type) == CUDA_SUCCESS &&
                                   type == CU_GRAPH_NODE_TYPE_GRAPH &&
                                   call.driver.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS;
            if (!has_child) continue;
            left.push_back(child);
            call.lend(HandleKind::kGraph, child, HandleKind::kGraphNode, node);
        }
    }
}

void name_node(Call& call, CUgraph graph, CUgraphNode& node) {
    if (!node) return;
    CUgraphNode id = node;
    if (call.known(HandleKind::kGraphNode, id) != CUDA_SUCCESS) learn_nodes(call, graph);
    call.known(HandleKind::kGraphNode, node);
}

}  // namespace

CUresult cuGraphExecUpdate_v2(Call& call, CUgraphExec exec, CUgraph graph,
                              CUgraphExecUpdateResultInfo* info) {
    if (!call.driver.cuGraphExecUpdate_v2) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuGraphExecUpdate_v2(exec, graph, info);
    if (status == CUDA_SUCCESS) {
        call.session.graph_waits().made(exec, graph);
        call.session.graph_copies().updated(exec, graph);
    }
    if (!info) return status;
    name_node(call, graph, info->errorNode);
    name_node(call, graph, info->errorFromNode);
    return status;
}

namespace {

void note_instance(Call& call, CUgraphExec exec, CUgraph graph, unsigned long long flags) {
    call.session.graph_waits().made(exec, graph);
    call.session.graph_copies().made(exec, graph, flags);
}

}  // namespace

CUresult cuGraphInstantiate_v2(Call& call, CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node,
                               char* log, size_t log_bytes) {
    if (!call.driver.cuGraphInstantiate_v2) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuGraphInstantiate_v2(exec, graph, error_node, log, log_bytes);
    if (status == CUDA_SUCCESS && exec) note_instance(call, *exec, graph, 0);
    if (error_node) name_node(call, graph, *error_node);
    return status;
}

CUresult cuGraphInstantiateWithFlags(Call& call, CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
    if (!call.driver.cuGraphInstantiateWithFlags) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuGraphInstantiateWithFlags(exec, graph, flags);
    if (status == CUDA_SUCCESS && exec) note_instance(call, *exec, graph, flags);
    return status;
}

CUresult cuGraphExecDestroy(Call& call, CUgraphExec exec) {
    if (!call.driver.cuGraphExecDestroy) return CUDA_ERROR_NOT_SUPPORTED;
    call.session.graph_waits().gone(exec);
    call.session.graph_copies().gone(exec);
    return call.driver.cuGraphExecDestroy(exec);
}

CUresult cuGraphExecChildGraphNodeSetParams(Call& call, CUgraphExec exec, CUgraphNode node, CUgraph child) {
    if (!call.driver.cuGraphExecChildGraphNodeSetParams) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuGraphExecChildGraphNodeSetParams(exec, node, child);
    if (status != CUDA_SUCCESS) return status;
    call.session.graph_waits().changed(exec, node, child);
    call.session.graph_copies().changed_otherwise(
        exec, "a graph of which the program exchanged a child graph after it was instantiated");
    return status;
}

CUresult cuGraphExecMemsetNodeSetParams(Call& call, CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
    if (!call.driver.cuGraphExecMemsetNodeSetParams) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuGraphExecMemsetNodeSetParams(exec, node, fill, context);
    if (status == CUDA_SUCCESS)
        call.session.graph_copies().changed(exec, node, [&](CUgraphNode cloned) {
            return call.driver.cuGraphMemsetNodeSetParams(cloned, fill);
        });
    return status;
}

CUresult cuGraphNodeSetEnabled(Call& call, CUgraphExec exec, CUgraphNode node, unsigned int enabled) {
    if (!call.driver.cuGraphNodeSetEnabled) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuGraphNodeSetEnabled(exec, node, enabled);
    if (status == CUDA_SUCCESS)
        call.session.graph_copies().changed_otherwise(exec, "a graph of which the program switched a node");
    return status;
}

CUresult cuGraphAddEventRecordNode(Call& call, CUgraphNode* node, CUgraph graph,
                                   const CUgraphNode* dependencies, size_t count, CUevent event) {
    if (!call.driver.cuGraphAddEventRecordNode) return CUDA_ERROR_NOT_SUPPORTED;
    call.session.graph_waits().expect_nodes();
    return call.driver.cuGraphAddEventRecordNode(node, graph, dependencies, count, event);
}

CUresult cuGraphAddEventWaitNode(Call& call, CUgraphNode* node, CUgraph graph,
                                 const CUgraphNode* dependencies, size_t count, CUevent event) {
    if (!call.driver.cuGraphAddEventWaitNode) return CUDA_ERROR_NOT_SUPPORTED;
    call.session.graph_waits().expect_nodes();
    return call.driver.cuGraphAddEventWaitNode(node, graph, dependencies, count, event);
}

CUresult cuGraphExecEventRecordNodeSetEvent(Call& call, CUgraphExec exec, CUgraphNode node, CUevent event) {
    if (!call.driver.cuGraphExecEventRecordNodeSetEvent) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuGraphExecEventRecordNodeSetEvent(exec, node, event);
    if (status == CUDA_SUCCESS)
        call.session.graph_waits().changed(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    return status;
}

CUresult cuGraphExecEventWaitNodeSetEvent(Call& call, CUgraphExec exec, CUgraphNode node, CUevent event) {
    if (!call.driver.cuGraphExecEventWaitNodeSetEvent) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuGraphExecEventWaitNodeSetEvent(exec, node, event);
    if (status == CUDA_SUCCESS)
        call.session.graph_waits().changed(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    return status;
}

}  // namespace smt::runtime::server::served
