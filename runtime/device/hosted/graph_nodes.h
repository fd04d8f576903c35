// What graphs.cpp and graph_nodes.cpp share: handles are the objects' addresses.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "runtime/device/hosted/hosted.h"

namespace smt::runtime::device::hosted {

// Child graphs are in no list, and are used by handle only.
inline Graph* graph_of(CUgraph handle) { return reinterpret_cast<Graph*>(handle); }
inline Node* node_of(CUgraphNode handle) { return reinterpret_cast<Node*>(handle); }
inline CUgraphNode handle_of(Node* node) { return reinterpret_cast<CUgraphNode>(node); }

// Whether all of them are nodes of that graph itself. An edge from elsewhere would outlive what it begins at.
inline bool are_of(const Graph* graph, const CUgraphNode* nodes, size_t count) {
    return std::all_of(nodes, nodes + count, [&](CUgraphNode node) { return node_of(node)->owner == graph; });
}
// Whether the graph may hold a copy of the child: copies of copies double with each call. With the lock.
bool has_room(const Graph& graph, const Graph& child);

// `of`: the graph's node -> the copy's.
std::unique_ptr<Graph> clone(const Graph& graph, std::unordered_map<const Node*, Node*>* of);
std::unique_ptr<Graph> take_graph(CUgraph handle);  // out of the list; null: it is none of it. With the lock
Node* in_exec(CUgraphExec handle,
              CUgraphNode node);  // an executable graph's own; null: it has none. With the lock

}  // namespace smt::runtime::device::hosted
