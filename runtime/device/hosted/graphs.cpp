// Graphs run on the stream they are launched into, one node after the other, in an order that the edges allow.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "runtime/device/hosted/backend.h"

namespace smt::runtime::device::hosted {

Node* Graph::add(std::unique_ptr<Node> node) {
    node->owner = this;
    nodes.push_back(std::move(node));
    return nodes.back().get();
}

namespace {

struct Exec {
    std::shared_ptr<Graph> graph;
    std::unordered_map<const Node*, Node*> of;   // the graph's node -> ours
};

struct State {
    std::unordered_map<CUgraph, std::unique_ptr<Graph>> graphs;
    std::unordered_map<CUgraphExec, std::unique_ptr<Exec>> execs;
};

State& state() {
    static State* state = new State;
    return *state;
}

Graph* graph_of(CUgraph handle) {
    // Child graphs are not in the list, and are used by handle only.
    return reinterpret_cast<Graph*>(handle);
}
Node* node_of(CUgraphNode handle) { return reinterpret_cast<Node*>(handle); }
CUgraphNode handle_of(Node* node) { return reinterpret_cast<CUgraphNode>(node); }

Work work_of(const Node& node);

// What a node says it does, without its place in a graph.
std::unique_ptr<Node> copy_of(const Node& node) {
    auto made = std::make_unique<Node>();
    made->type = node.type;
    made->work = node.work;
    made->ready = node.ready;
    made->polled = node.polled;
    made->enabled = node.enabled;
    made->launch = node.launch;
    made->copy = node.copy;
    made->fill = node.fill;
    made->host = node.host;
    return made;
}

std::unique_ptr<Graph> clone(const Graph& graph, std::unordered_map<const Node*, Node*>* of) {
    auto copy = std::make_unique<Graph>();
    for (const auto& node : graph.nodes) {
        auto made = copy_of(*node);
        if (node->child) made->child = clone(*node->child, of);
        (*of)[node.get()] = copy->add(std::move(made));
    }
    for (const auto& node : graph.nodes) {
        for (const Node* before : node->after) (*of)[node.get()]->after.push_back((*of)[before]);
    }
    return copy;
}

void visit(Node* node, std::unordered_set<Node*>& seen, std::vector<Node*>& order) {
    if (!seen.insert(node).second) return;
    for (Node* before : node->after) visit(before, seen, order);
    order.push_back(node);
}

// The work of a graph and of the graphs in it, as it will go into a stream.
void flatten(const Graph& graph, std::vector<std::shared_ptr<Node>>& pieces) {
    std::unordered_set<Node*> seen;
    std::vector<Node*> order;
    for (const auto& node : graph.nodes) visit(node.get(), seen, order);
    for (Node* node : order) {
        if (!node->enabled) continue;
        if (node->child) {
            flatten(*node->child, pieces);
        } else {
            pieces.push_back(copy_of(*node));
        }
    }
}

Work work_of(const Node& node) {
    switch (node.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL: return nullptr;   // the backend runs it
        case CU_GRAPH_NODE_TYPE_MEMCPY: return copy_work(node.copy);
        case CU_GRAPH_NODE_TYPE_MEMSET: return fill_work(node.fill);
        case CU_GRAPH_NODE_TYPE_HOST: return [host = node.host] { host.fn(host.userData); };
        default: return node.work;
    }
}

CUresult add(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             std::unique_ptr<Node> node) {
    for (size_t i = 0; i < count; ++i) node->after.push_back(node_of(dependencies[i]));
    node->work = work_of(*node);
    Lock lock(world());
    *handle = handle_of(graph_of(graph)->add(std::move(node)));
    return CUDA_SUCCESS;
}

std::unique_ptr<Node> make(CUgraphNodeType type) {
    auto node = std::make_unique<Node>();
    node->type = type;
    return node;
}

CUresult set_kernel(Node* node, const CUDA_KERNEL_NODE_PARAMS& parameters) {
    const CUfunction function = parameters.func ? parameters.func : reinterpret_cast<CUfunction>(parameters.kern);
    Launch launch{function,
                  {parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ},
                  {parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ},
                  parameters.sharedMemBytes};
    CUresult status = pack(function, parameters.kernelParams, parameters.extra, &launch.parameters);
    if (status == CUDA_SUCCESS) status = backend().check(launch);
    if (status != CUDA_SUCCESS) return status;
    node->launch = std::move(launch);
    node->work = work_of(*node);
    return CUDA_SUCCESS;
}

Node* in_exec(CUgraphExec handle, CUgraphNode node) {
    auto exec = state().execs.find(handle);
    if (exec == state().execs.end()) return nullptr;
    auto found = exec->second->of.find(node_of(node));
    return found == exec->second->of.end() ? nullptr : found->second;
}

// As the driver fills a list: null asks for the count.
CUresult give(const std::vector<Node*>& nodes, CUgraphNode* to, size_t* count) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    if (to) {
        for (size_t i = 0; i < *count; ++i) to[i] = i < nodes.size() ? handle_of(nodes[i]) : nullptr;
    }
    *count = to ? std::min(*count, nodes.size()) : nodes.size();
    return CUDA_SUCCESS;
}

}  // namespace

}  // namespace smt::runtime::device::hosted

using namespace smt::runtime::device::hosted;

DRIVER_EXPORT CUresult cuGraphCreate(CUgraph* graph, unsigned) {
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphCreate);
    Lock lock(world());
    auto made = std::make_unique<Graph>();
    *graph = reinterpret_cast<CUgraph>(made.get());
    state().graphs[*graph] = std::move(made);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
    DRIVER_ASKED(cuGraphDestroy);
    Lock lock(world());
    return state().graphs.erase(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGraphClone(CUgraph* copy, CUgraph graph) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphClone);
    Lock lock(world());
    std::unordered_map<const Node*, Node*> of;
    auto made = clone(*graph_of(graph), &of);
    *copy = reinterpret_cast<CUgraph>(made.get());
    state().graphs[*copy] = std::move(made);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                         size_t count) {
    DRIVER_ASKED(cuGraphAddEmptyNode);
    return add(node, graph, dependencies, count, make(CU_GRAPH_NODE_TYPE_EMPTY));
}
DRIVER_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                                             size_t count, const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphAddKernelNode_v2);
    auto node = make(CU_GRAPH_NODE_TYPE_KERNEL);
    if (CUresult status = set_kernel(node.get(), *parameters); status != CUDA_SUCCESS) return status;
    return add(handle, graph, dependencies, count, std::move(node));
}
DRIVER_EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphKernelNodeSetParams_v2);
    return set_kernel(node_of(node), *parameters);
}
DRIVER_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* parameters) {
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
    size_t offset = 0;
    for (size_t i = 0; cuFuncGetParamInfo(node.launch.function, i, &offset, nullptr) == CUDA_SUCCESS; ++i) {
        node.parameter_pointers.push_back(node.launch.parameters.data() + offset);
    }
    parameters->kernelParams = node.parameter_pointers.data();
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode handle,
                                                       const CUDA_KERNEL_NODE_PARAMS* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphExecKernelNodeSetParams_v2);
    Node* node = in_exec(exec, handle);
    return node ? set_kernel(node, *parameters) : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                                          size_t count, const CUDA_MEMCPY3D* copy, CUcontext) {
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
    node_of(handle)->copy = *copy;
    node_of(handle)->work = work_of(*node_of(handle));
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode handle, const CUDA_MEMCPY3D* copy,
                                                    CUcontext) {
    DRIVER_ASKED(cuGraphExecMemcpyNodeSetParams);
    Node* node = in_exec(exec, handle);
    return node ? cuGraphMemcpyNodeSetParams(handle_of(node), copy) : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                                          size_t count, const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext) {
    if (!fill) return CUDA_ERROR_INVALID_VALUE;
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
    node_of(handle)->host = *host;
    node_of(handle)->work = work_of(*node_of(handle));
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                                  const CUDA_HOST_NODE_PARAMS* host) {
    DRIVER_ASKED(cuGraphExecHostNodeSetParams);
    Node* node = in_exec(exec, handle);
    return node ? cuGraphHostNodeSetParams(handle_of(node), host) : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies,
                                              size_t count, CUgraph child) {
    DRIVER_ASKED(cuGraphAddChildGraphNode);
    auto node = make(CU_GRAPH_NODE_TYPE_GRAPH);
    std::unordered_map<const Node*, Node*> of;
    node->child = clone(*graph_of(child), &of);
    return add(handle, graph, dependencies, count, std::move(node));
}
DRIVER_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
    *graph = reinterpret_cast<CUgraph>(node_of(node)->child.get());
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_EXPORT CUresult cuGraphDestroyNode(CUgraphNode handle) {
    DRIVER_ASKED(cuGraphDestroyNode);
    Lock lock(world());
    auto& nodes = node_of(handle)->owner->nodes;
    for (auto& node : nodes) std::erase(node->after, node_of(handle));
    std::erase_if(nodes, [&](const auto& node) { return node.get() == node_of(handle); });
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
    if (!type) return CUDA_ERROR_INVALID_VALUE;
    *type = node_of(node)->type;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
    DRIVER_ASKED(cuGraphGetNodes);
    std::vector<Node*> all;
    for (auto& node : graph_of(graph)->nodes) all.push_back(node.get());
    return give(all, nodes, count);
}
DRIVER_EXPORT CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
    DRIVER_ASKED(cuGraphGetRootNodes);
    std::vector<Node*> roots;
    for (auto& node : graph_of(graph)->nodes) {
        if (node->after.empty()) roots.push_back(node.get());
    }
    return give(roots, nodes, count);
}
DRIVER_EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                                        size_t* count) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphGetEdges_v2);
    std::vector<Node*> before, behind;
    for (auto& node : graph_of(graph)->nodes) {
        for (Node* each : node->after) {
            before.push_back(each);
            behind.push_back(node.get());
        }
    }
    if (data) memset(data, 0, *count * sizeof *data);
    size_t also = *count;
    give(behind, to, &also);
    return give(before, from, count);
}
DRIVER_EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                                   size_t* count) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphNodeGetDependencies_v2);
    if (data) memset(data, 0, *count * sizeof *data);
    return give(node_of(node)->after, nodes, count);
}
DRIVER_EXPORT CUresult cuGraphAddDependencies_v2(CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                                               const CUgraphEdgeData*, size_t count) {
    DRIVER_ASKED(cuGraphAddDependencies_v2);
    Lock lock(world());
    for (size_t i = 0; i < count; ++i) node_of(to[i])->after.push_back(node_of(from[i]));
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* handle, CUgraph graph, unsigned long long flags) {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphInstantiateWithFlags, "flags=%llu", flags);
    Lock lock(world());
    auto exec = std::make_unique<Exec>();
    exec->graph = clone(*graph_of(graph), &exec->of);
    *handle = reinterpret_cast<CUgraphExec>(exec.get());
    state().execs[*handle] = std::move(exec);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return cuGraphInstantiateWithFlags(exec, graph, parameters->flags);
}
DRIVER_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
    if (!info) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphExecUpdate_v2);
    Lock lock(world());
    auto exec = state().execs.find(handle);
    if (exec == state().execs.end()) return CUDA_ERROR_INVALID_VALUE;
    *info = {};
    if (exec->second->graph->nodes.size() != graph_of(graph)->nodes.size()) {
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    exec->second->of.clear();
    exec->second->graph = clone(*graph_of(graph), &exec->second->of);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned enabled) {
    DRIVER_ASKED(cuGraphNodeSetEnabled);
    Node* node = in_exec(exec, handle);
    if (!node) return CUDA_ERROR_INVALID_VALUE;
    node->enabled = enabled != 0;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
    DRIVER_ASKED(cuGraphExecDestroy);
    Lock lock(world());
    return state().execs.erase(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGraphUpload(CUgraphExec, CUstream) {
    DRIVER_ASKED(cuGraphUpload);
    return CUDA_SUCCESS;
}
// A launch that is captured becomes a child graph, as it is now.
DRIVER_EXPORT CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    DRIVER_ASKED(cuGraphLaunch);
    Lock lock(world());
    auto exec = state().execs.find(handle);
    auto stream = find_stream(stream_handle);
    if (exec == state().execs.end()) return CUDA_ERROR_INVALID_VALUE;
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) {
        auto node = make(CU_GRAPH_NODE_TYPE_GRAPH);
        std::unordered_map<const Node*, Node*> of;
        node->child = clone(*exec->second->graph, &of);
        node->after = stream->tail;
        stream->tail = {stream->capture->add(std::move(node))};
        return CUDA_SUCCESS;
    }
    std::vector<std::shared_ptr<Node>> pieces;
    flatten(*exec->second->graph, pieces);
    for (auto& piece : pieces) append(*stream, std::move(piece));
    return CUDA_SUCCESS;
}
