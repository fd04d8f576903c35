// Memcpy nodes and host nodes. A node may run long after it was made, so a host end of a copy must be memory
// that the device reaches by itself: pinned, managed, registered, or remapped (remapped_pages.h). Otherwise
// the node is a child graph (carried.h), which is made anew instead of changed.
#include "driver.gen.h"
#include "interpose/driver/callback.h"
#include "interpose/driver/carried.h"
#include "interpose/driver/copy.h"
#include "interpose/driver/graph.h"
#include "interpose/driver/remapped_pages.h"
#include "runtime/protocol/try.h"

namespace smt::interpose {

using namespace protocol;

namespace {

CUresult add_carried(const NodePlace& place, const driver::GraphCopy& copy, CUgraphNode* out) {
    CUgraph child = nullptr;
    CUresult status = driver::make_carried(copy.copy, copy.before, copy.behind, &child);
    if (status != CUDA_SUCCESS) return status;
    status = driver::cuGraphAddChildGraphNode(out, reinterpret_cast<CUgraph>(place.graph), place.dependencies,
                                              place.dependency_count, child);
    driver::cuGraphDestroy(child);
    return status;
}

CUresult copy_node(const NodePlace& place, const CUDA_MEMCPY3D* params, CUgraphNode* out,
                   const char* symbol) {
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(place.check(out));
    driver::GraphCopy copy;
    CUresult described = driver::resolve_for_graph(driver::shaped(*params), copy);
    if (described == CUDA_SUCCESS && copy.carried())
        described =
            place.operation == NodeOperation::kAdd ? add_carried(place, copy, out) : CUDA_ERROR_NOT_SUPPORTED;
    if (described == CUDA_ERROR_NOT_SUPPORTED) return refuse(symbol);
    if (described != CUDA_SUCCESS || copy.carried()) return described;
    const GraphCopyNode node{place.operation, static_cast<uint32_t>(place.dependency_count), place.graph,
                             place.node, copy.copy};
    RemoteCall call(Op::kGraphMemcpyNode, sizeof(node) + place.bytes());
    if (!call.open()) return call.status();
    call.in(node);
    in_dependencies(call, place);
    return finish_node(call, out);
}

// Replaces the arena's address in the node by the application's. `Host` is void* or const void*.
template <typename Host>
void name_application_memory(CUmemorytype type, Host*& host, CUdeviceptr& device) {
    if (type == CU_MEMORYTYPE_HOST)
        host = reinterpret_cast<Host*>(driver::application_address(reinterpret_cast<uint64_t>(host)));
    if (type == CU_MEMORYTYPE_UNIFIED) device = driver::application_address(device);
}

CUresult host_node(const NodePlace& place, const CUDA_HOST_NODE_PARAMS* params, CUgraphNode* out) {
    if (!params || !params->fn) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(place.check(out));
    SMT_TRY(start_callback_thread());
    RemoteCall call(Op::kGraphHostNode, sizeof(GraphHostNode) + place.bytes());
    if (!call.open()) return call.status();
    call.in(GraphHostNode{place.operation, static_cast<uint32_t>(place.dependency_count), place.graph,
                          place.node, reinterpret_cast<uint64_t>(params->fn),
                          reinterpret_cast<uint64_t>(params->userData)});
    in_dependencies(call, place);
    return finish_node(call, out);
}

}  // namespace

namespace driver {

CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                              size_t numDependencies, const CUDA_MEMCPY3D* copyParams, CUcontext) {
    return copy_node(NodePlace::add(hGraph, dependencies, numDependencies), copyParams, phGraphNode,
                     "cuGraphAddMemcpyNode");
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
    return copy_node(NodePlace::set(hNode), nodeParams, nullptr, "cuGraphMemcpyNodeSetParams");
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMCPY3D* copyParams, CUcontext) {
    return copy_node(NodePlace::set(hGraphExec, hNode), copyParams, nullptr,
                     "cuGraphExecMemcpyNodeSetParams");
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
    if (!hNode || !nodeParams) return CUDA_ERROR_INVALID_VALUE;
    RemoteCall call(Op::kGraphMemcpyNodeGet, sizeof(uint64_t));
    if (!call.open()) return call.status();
    call.in(reinterpret_cast<uint64_t>(hNode));
    SMT_TRY(call.wait());
    call.out(nodeParams);
    name_application_memory(nodeParams->srcMemoryType, nodeParams->srcHost, nodeParams->srcDevice);
    name_application_memory(nodeParams->dstMemoryType, nodeParams->dstHost, nodeParams->dstDevice);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                            size_t numDependencies, const CUDA_HOST_NODE_PARAMS* nodeParams) {
    return host_node(NodePlace::add(hGraph, dependencies, numDependencies), nodeParams, phGraphNode);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
    return host_node(NodePlace::set(hNode), nodeParams, nullptr);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS* nodeParams) {
    return host_node(NodePlace::set(hGraphExec, hNode), nodeParams, nullptr);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
    if (!hNode || !nodeParams) return CUDA_ERROR_INVALID_VALUE;
    RemoteCall call(Op::kGraphHostNodeGet, sizeof(uint64_t));
    if (!call.open()) return call.status();
    call.in(reinterpret_cast<uint64_t>(hNode));
    SMT_TRY(call.wait());
    uint64_t function = 0, user_data = 0;
    call.out(&function);
    call.out(&user_data);
    nodeParams->fn = reinterpret_cast<CUhostFn>(function);
    nodeParams->userData = reinterpret_cast<void*>(user_data);
    return CUDA_SUCCESS;
}

}  // namespace driver

}  // namespace smt::interpose
