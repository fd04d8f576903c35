// Graphs run on the stream they are launched into, one node after the other, in an order that the edges
// allow.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "runtime/device/hosted/backend.h"
#include "runtime/device/hosted/graph_nodes.h"

namespace smt::runtime::device::hosted {

Node* Graph::add(std::unique_ptr<Node> node) {
    node->owner = this;
    nodes.push_back(std::move(node));
    return nodes.back().get();
}

namespace {

struct Exec {
    std::shared_ptr<Graph> graph;
    std::shared_ptr<bool> last_over;            // of its last launch, with the lock; null: there was none
    uint64_t last_stream = 0;                   // its id
    std::unordered_map<const Node*, Node*> of;  // the graph's node -> ours
};

struct GraphsState {
    std::unordered_map<CUgraph, std::unique_ptr<Graph>> graphs;
    std::unordered_map<CUgraphExec, std::unique_ptr<Exec>> execs;
};

GraphsState& graphs_state() {
    static GraphsState* state = new GraphsState;
    return *state;
}

Exec* find_exec(CUgraphExec handle) {
    auto found = graphs_state().execs.find(handle);
    return found == graphs_state().execs.end() ? nullptr : found->second.get();
}

// What the graph and the graphs in it hold of user objects.
void gather(const Graph& graph, UserReferences& objects) {
    for (const auto& [object, count] : graph.objects) objects[object] += count;
    for (const auto& node : graph.nodes) {
        if (node->child) gather(*node->child, objects);
    }
}

constexpr size_t kMostNodes = 1 << 13;  // of a graph with those in it, where one is put into the other

size_t size_of(const Graph& graph) {
    size_t nodes = graph.nodes.size();
    for (const auto& node : graph.nodes) {
        if (node->child) nodes += size_of(*node->child);
    }
    return nodes;
}

void list(const Graph& graph, std::unordered_set<const Node*>& nodes) {
    for (const auto& node : graph.nodes) {
        nodes.insert(node.get());
        if (node->child) list(*node->child, nodes);
    }
}

// Pairs the nodes of two graphs, and of those in them. False: they are not alike.
bool pair(const Graph& graph, const Graph& copy, std::unordered_map<const Node*, Node*>* of) {
    if (graph.nodes.size() != copy.nodes.size()) return false;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& from = *graph.nodes[i];
        Node& to = *copy.nodes[i];
        if (!from.child != !to.child || (from.child && !pair(*from.child, *to.child, of))) return false;
        (*of)[&from] = &to;
    }
    return true;
}

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
    made->event = node.event;
    made->batch = node.batch;
    return made;
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
        } else if (!node->batch.empty()) {
            for (const CUstreamBatchMemOpParams& each : node->batch) pieces.push_back(value_work(each));
        } else if (node->event) {
            if (auto piece = event_work(node->type, node->event)) pieces.push_back(std::move(piece));
        } else {
            pieces.push_back(copy_of(*node));
        }
    }
}

// Behind the launch before it, on whichever stream that was.
void append_in_order(Exec& exec, Stream& stream, std::vector<std::shared_ptr<Node>>& pieces) {
    if (exec.last_over && !*exec.last_over && exec.last_stream != stream.id) {
        auto wait = std::make_shared<Node>();
        wait->ready = [over = exec.last_over] { return *over; };
        append(stream, std::move(wait));
    }
    for (auto& piece : pieces) append(stream, std::move(piece));
    auto end = std::make_shared<Node>();
    exec.last_over = std::make_shared<bool>(false);
    exec.last_stream = stream.id;
    end->work = [over = exec.last_over] {
        Lock lock(world());
        *over = true;
        changed().notify_all();
    };
    append(stream, std::move(end));
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

std::unique_ptr<Graph> clone(const Graph& graph, std::unordered_map<const Node*, Node*>* of) {
    auto copy = std::make_unique<Graph>();
    copy->objects = graph.objects;
    for (const auto& [object, count] : copy->objects) retain(object, count);
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

bool has_room(const Graph& graph, const Graph& child) { return size_of(graph) + size_of(child) < kMostNodes; }

Node* in_exec(CUgraphExec handle, CUgraphNode node) {
    auto exec = graphs_state().execs.find(handle);
    if (exec == graphs_state().execs.end()) return nullptr;
    auto found = exec->second->of.find(node_of(node));
    return found == exec->second->of.end() ? nullptr : found->second;
}

std::unique_ptr<Graph> take_graph(CUgraph handle) {
    auto found = graphs_state().graphs.find(handle);
    if (found == graphs_state().graphs.end()) return nullptr;
    std::unique_ptr<Graph> graph = std::move(found->second);
    graphs_state().graphs.erase(found);
    return graph;
}

}  // namespace smt::runtime::device::hosted

using namespace smt::runtime::device::hosted;

DRIVER_EXPORT CUresult cuGraphCreate(CUgraph* graph, unsigned) {
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphCreate);
    Lock lock(world());
    auto made = std::make_unique<Graph>();
    *graph = reinterpret_cast<CUgraph>(made.get());
    graphs_state().graphs[*graph] = std::move(made);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
    DRIVER_ASKED(cuGraphDestroy);
    Lock lock(world());
    const std::unique_ptr<Graph> gone = take_graph(graph);
    if (!gone) return CUDA_ERROR_INVALID_VALUE;
    UserReferences objects;
    gather(*gone, objects);
    lock.unlock();
    let_go(objects);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphClone(CUgraph* copy, CUgraph graph) {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphClone);
    Lock lock(world());
    std::unordered_map<const Node*, Node*> of;
    auto made = clone(*graph_of(graph), &of);
    for (auto& [original, node] : of) node->original = original;
    *copy = reinterpret_cast<CUgraph>(made.get());
    graphs_state().graphs[*copy] = std::move(made);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode original, CUgraph copy) {
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphNodeFindInClone);
    Lock lock(world());
    for (const auto& node : graph_of(copy)->nodes) {
        if (node->original != node_of(original)) continue;
        *found = handle_of(node.get());
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGraphDestroyNode(CUgraphNode handle) {
    DRIVER_ASKED(cuGraphDestroyNode);
    Lock lock(world());
    auto& nodes = node_of(handle)->owner->nodes;
    for (auto& node : nodes) std::erase(node->after, node_of(handle));
    UserReferences objects;
    if (node_of(handle)->child) gather(*node_of(handle)->child, objects);
    std::erase_if(nodes, [&](const auto& node) { return node.get() == node_of(handle); });
    lock.unlock();
    let_go(objects);
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
DRIVER_EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                                          CUgraphEdgeData* data, size_t* count) {
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
DRIVER_EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes,
                                                     CUgraphEdgeData* data, size_t* count) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphNodeGetDependencies_v2);
    if (data) memset(data, 0, *count * sizeof *data);
    return give(node_of(node)->after, nodes, count);
}
DRIVER_EXPORT CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                                 const CUgraphNode* to, const CUgraphEdgeData*,
                                                 size_t count) {
    DRIVER_ASKED(cuGraphAddDependencies_v2);
    if (!are_of(graph_of(graph), from, count) || !are_of(graph_of(graph), to, count))
        return CUDA_ERROR_INVALID_VALUE;
    Lock lock(world());
    for (size_t i = 0; i < count; ++i) node_of(to[i])->after.push_back(node_of(from[i]));
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* handle, CUgraph graph,
                                                   unsigned long long flags) {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphInstantiateWithFlags, "flags=%llu", flags);
    Lock lock(world());
    auto exec = std::make_unique<Exec>();
    exec->graph = clone(*graph_of(graph), &exec->of);
    *handle = reinterpret_cast<CUgraphExec>(exec.get());
    graphs_state().execs[*handle] = std::move(exec);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                                    CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return cuGraphInstantiateWithFlags(exec, graph, parameters->flags);
}
DRIVER_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph,
                                            CUgraphExecUpdateResultInfo* info) {
    if (!info) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphExecUpdate_v2);
    Lock lock(world());
    Exec* exec = find_exec(handle);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    *info = {};
    const auto& nodes = graph_of(graph)->nodes;
    if (exec->graph->nodes.size() != nodes.size()) {
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        if (!nodes.empty()) info->errorNode = handle_of(nodes.back().get());
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    UserReferences before;
    gather(*exec->graph, before);
    exec->of.clear();
    exec->graph = clone(*graph_of(graph), &exec->of);
    lock.unlock();
    let_go(before);
    return CUDA_SUCCESS;
}
// The copy that replaces the node's graph is known by the nodes of the graph that the node was made with.
DRIVER_EXPORT CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec handle, CUgraphNode node_handle,
                                                          CUgraph child) {
    DRIVER_ASKED(cuGraphExecChildGraphNodeSetParams);
    Lock lock(world());
    Exec* exec = find_exec(handle);
    Node* node = in_exec(handle, node_handle);
    if (!node || !node->child) return CUDA_ERROR_INVALID_VALUE;
    const std::unique_ptr<Graph>& made_with = node_of(node_handle)->child;
    std::unordered_map<const Node*, Node*> of;
    std::unique_ptr<Graph> made = clone(*graph_of(child), &of);
    UserReferences before;
    of.clear();
    const bool alike = made_with && pair(*made_with, *made, &of);
    gather(alike ? *node->child : *made, before);
    if (alike) {
        std::unordered_set<const Node*> gone;
        list(*node->child, gone);
        std::erase_if(exec->of, [&](const auto& each) { return gone.contains(each.second); });
        for (const auto& [from, to] : of) exec->of[from] = to;
        node->child = std::move(made);
    }
    lock.unlock();
    let_go(before);
    return alike ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned enabled) {
    DRIVER_ASKED(cuGraphNodeSetEnabled);
    Lock lock(world());
    Node* node = in_exec(exec, handle);
    if (!node) return CUDA_ERROR_INVALID_VALUE;
    node->enabled = enabled != 0;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
    DRIVER_ASKED(cuGraphExecDestroy);
    Lock lock(world());
    auto found = graphs_state().execs.find(exec);
    if (found == graphs_state().execs.end()) return CUDA_ERROR_INVALID_VALUE;
    UserReferences objects;
    gather(*found->second->graph, objects);
    graphs_state().execs.erase(found);
    lock.unlock();
    let_go(objects);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphUpload(CUgraphExec, CUstream) {
    DRIVER_ASKED(cuGraphUpload);
    return CUDA_SUCCESS;
}
// A launch that is captured becomes a child graph, as it is now.
DRIVER_EXPORT CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    DRIVER_ASKED(cuGraphLaunch);
    Lock lock(world());
    auto exec = graphs_state().execs.find(handle);
    auto stream = find_stream(stream_handle);
    if (exec == graphs_state().execs.end()) return CUDA_ERROR_INVALID_VALUE;
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) {
        auto node = std::make_unique<Node>();
        node->type = CU_GRAPH_NODE_TYPE_GRAPH;
        if (stream->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (!has_room(*stream->capture->graph, *exec->second->graph)) return CUDA_ERROR_OUT_OF_MEMORY;
        std::unordered_map<const Node*, Node*> of;
        node->child = clone(*exec->second->graph, &of);
        return add_captured(*stream, std::move(node));
    }
    Exec& launched = *exec->second;
    std::vector<std::shared_ptr<Node>> pieces;
    flatten(*launched.graph, pieces);
    append_in_order(launched, *stream, pieces);
    // A launch under way holds the graph's user objects, too.
    UserReferences objects;
    gather(*exec->second->graph, objects);
    if (objects.empty()) return CUDA_SUCCESS;
    for (const auto& [object, count] : objects) retain(object, count);
    auto end = std::make_shared<Node>();
    end->work = [objects] { let_go(objects); };
    append(*stream, std::move(end));
    return CUDA_SUCCESS;
}
