// Kernel nodes: add, change, change in an executable graph, read back.
#include <cstdlib>
#include <cstring>

#include "driver.gen.h"
#include "interpose/driver/function.h"
#include "interpose/driver/graph.h"
#include "interpose/driver/launch.h"
#include "interpose/driver/lock.h"
#include "runtime/protocol/try.h"

namespace smt::interpose {

using namespace protocol;

namespace {

CUresult kernel_node(const NodePlace& place, const CUDA_KERNEL_NODE_PARAMS* params, CUgraphNode* out) {
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(place.check(out));
    Function* function = params->func ? find_function(params->func) : find_function(params->kern);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    Parameters parameters;
    SMT_TRY(find_parameters(*function, params->kernelParams, params->extra, parameters));
    if (!atomics_hold(*function, parameters)) return refuse("cuGraphAddKernelNode_v2");

    GraphKernelNode node{
        place.operation, static_cast<uint32_t>(place.dependency_count), place.graph, place.node, {}};
    node.launch = {function->id,
                   0,
                   {params->gridDimX, params->gridDimY, params->gridDimZ},
                   {params->blockDimX, params->blockDimY, params->blockDimZ},
                   params->sharedMemBytes,
                   0,
                   function->parameter_bytes,
                   0};
    RemoteCall call(Op::kGraphKernelNode, sizeof(node) + place.bytes() + launch_bound(node.launch));
    if (!call.open()) return call.status();
    call.in(node);
    in_dependencies(call, place);
    if (char* room = call.in_space(function->parameter_bytes)) pack_parameters(*function, parameters, room);
    return finish_node(call, out);
}

// The parameters of nodes that were read back. The application may read them while the node lives: until the
// node is destroyed, or the outermost graph that contains it.
struct NodeParameters {
    NodeParameters* next;
    Session* session;  // of the node and the graph
    uint64_t node;
    uint64_t graph;
    uint32_t count;
    uint32_t bytes;
    void** pointers() { return reinterpret_cast<void**>(this + 1); }
    char* values() { return reinterpret_cast<char*>(pointers() + count); }
};
constexpr uint32_t kBuckets = 1024;
constinit NodeParameters* read_nodes[kBuckets] = {};
constinit pthread_mutex_t read_nodes_lock = PTHREAD_MUTEX_INITIALIZER;

// Drops those of one node, or of all nodes of a graph.
template <typename Match>
void drop_parameters(Match match) {
    Lock lock(read_nodes_lock);
    for (NodeParameters*& bucket : read_nodes) {
        for (NodeParameters** at = &bucket; *at;) {
            NodeParameters* kept = *at;
            if (kept->session != thread_session || !match(*kept)) {
                at = &kept->next;
                continue;
            }
            *at = kept->next;
            std::free(kept);
        }
    }
}

void** keep_parameters(uint64_t node, uint64_t graph, const Function& function, const char* values) {
    Lock lock(read_nodes_lock);
    NodeParameters** at = &read_nodes[(node >> 4) % kBuckets];
    while (*at && !((*at)->node == node && (*at)->session == thread_session)) at = &(*at)->next;
    NodeParameters* kept = *at;
    if (kept && (kept->count != function.parameter_count || kept->bytes != function.parameter_bytes)) {
        *at = kept->next;
        std::free(kept);
        kept = nullptr;
    }
    if (!kept) {
        uint64_t size =
            sizeof(NodeParameters) + function.parameter_count * sizeof(void*) + function.parameter_bytes;
        kept = static_cast<NodeParameters*>(std::malloc(size));
        if (!kept) return nullptr;
        NodeParameters** bucket = &read_nodes[(node >> 4) % kBuckets];
        *kept = {*bucket, thread_session, node, graph, function.parameter_count, function.parameter_bytes};
        *bucket = kept;
    }
    std::memcpy(kept->values(), values, function.parameter_bytes);
    for (uint32_t i = 0; i < kept->count; ++i)
        kept->pointers()[i] = kept->values() + function.parameters[i].offset;
    return kept->pointers();
}

}  // namespace

namespace driver {

CUresult cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                 size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
    return kernel_node(NodePlace::add(hGraph, dependencies, numDependencies), nodeParams, phGraphNode);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
    return kernel_node(NodePlace::set(hNode), nodeParams, nullptr);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
    return kernel_node(NodePlace::set(hGraphExec, hNode), nodeParams, nullptr);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) {
    if (!hNode || !nodeParams) return CUDA_ERROR_INVALID_VALUE;
    uint64_t node = reinterpret_cast<uint64_t>(hNode);
    RemoteCall call(Op::kGraphKernelNodeGet, sizeof(node));
    if (!call.open()) return call.status();
    call.in(node);
    SMT_TRY(call.wait());
    GraphKernelNode found{};
    call.out(&found);
    Function* function = function_by_id(found.launch.function);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    const char* values = call.reply().take(found.launch.parameter_bytes);
    if (!values || found.launch.parameter_bytes < function->parameter_bytes) return CUDA_ERROR_UNKNOWN;
    void** parameters = keep_parameters(node, found.graph, *function, values);
    if (!parameters) return CUDA_ERROR_OUT_OF_MEMORY;
    CUcontext context = nullptr;
    driver::cuCtxGetCurrent(&context);
    const Launch& launch = found.launch;
    *nodeParams = {};
    nodeParams->func = reinterpret_cast<CUfunction>(function);
    nodeParams->gridDimX = launch.grid[0];
    nodeParams->gridDimY = launch.grid[1];
    nodeParams->gridDimZ = launch.grid[2];
    nodeParams->blockDimX = launch.block[0];
    nodeParams->blockDimY = launch.block[1];
    nodeParams->blockDimZ = launch.block[2];
    nodeParams->sharedMemBytes = launch.shared_bytes;
    nodeParams->kernelParams = parameters;
    if (function->image->owner == ImageOwner::kLibrary)
        nodeParams->kern = reinterpret_cast<CUkernel>(function);
    nodeParams->ctx = context;
    return CUDA_SUCCESS;
}

}  // namespace driver

namespace adjust {

CUresult cuGraphDestroy(CUresult status, CUgraph graph) {
    const auto gone = reinterpret_cast<uint64_t>(graph);
    if (status == CUDA_SUCCESS)
        drop_parameters([&](const NodeParameters& kept) { return kept.graph == gone; });
    return status;
}

CUresult cuGraphDestroyNode(CUresult status, CUgraphNode node) {
    const auto gone = reinterpret_cast<uint64_t>(node);
    if (status == CUDA_SUCCESS)
        drop_parameters([&](const NodeParameters& kept) { return kept.node == gone; });
    return status;
}

}  // namespace adjust

}  // namespace smt::interpose
