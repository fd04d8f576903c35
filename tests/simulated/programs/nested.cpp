// Graphs in graphs, as JAX builds its command buffers: nodes by cuGraphAddNode, child graphs that are moved
// into their node or copied, nodes of a child graph changed in the executable graph of the whole.
#include <vector>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

namespace {

constexpr unsigned kCount = 256;
CUfunction add = nullptr;
CUcontext context = nullptr;

CUgraphNodeParams set_words(CUdeviceptr to, unsigned value) {
    CUgraphNodeParams node{};
    node.type = CU_GRAPH_NODE_TYPE_MEMSET;
    node.memset = {to, 0, value, 4, kCount, 1, context};
    return node;
}

// to += from
struct Addition {
    CUdeviceptr to, from;
    unsigned count = kCount;
    void* parameters[4] = {&to, &from, &to, &count};
    Addition(CUdeviceptr to, CUdeviceptr from) : to(to), from(from) {}
    CUgraphNodeParams node() {
        CUgraphNodeParams node{};
        node.type = CU_GRAPH_NODE_TYPE_KERNEL;
        node.kernel.func = add;
        node.kernel.gridDimX = kCount / 128, node.kernel.gridDimY = node.kernel.gridDimZ = 1;
        node.kernel.blockDimX = 128, node.kernel.blockDimY = node.kernel.blockDimZ = 1;
        node.kernel.kernelParams = parameters;
        return node;
    }
};

CUgraphNode append(CUgraph graph, CUgraphNode before, CUgraphNodeParams parameters,
                   const CUgraphEdgeData* edge = nullptr) {
    CUgraphNode node = nullptr;
    CHECK(cuGraphAddNode(&node, graph, before ? &before : nullptr, edge, before ? 1 : 0, &parameters));
    return node;
}

CUgraphNodeParams child(CUgraph graph, CUgraphChildGraphNodeOwnership ownership) {
    CUgraphNodeParams node{};
    node.type = CU_GRAPH_NODE_TYPE_GRAPH;
    node.graph.graph = graph;
    node.graph.ownership = ownership;
    return node;
}

unsigned run(CUgraphExec exec, CUdeviceptr total) {
    std::vector<unsigned> words(kCount);
    CHECK(cuMemsetD32(total, 0, kCount));
    CHECK(cuGraphLaunch(exec, nullptr));
    CHECK(cuMemcpyDtoH(words.data(), total, 4 * kCount));
    for (unsigned word : words) REQUIRE(word == words[0]);
    return words[0];
}

void refused(CUgraph graph) {
    CUgraphNode node = nullptr;
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    FAILS(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), CUDA_ERROR_NOT_SUPPORTED);
    parameters = child(graph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
    FAILS(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

int main() {
    context = preload::start();
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CUdeviceptr total = 0, step = 0, other = 0;
    for (CUdeviceptr* each : {&total, &step, &other}) CHECK(cuMemAlloc(each, 4 * kCount));
    CHECK(cuMemsetD32(other, 100, kCount));

    // inner: step = 5, total += step. outer: total += other, inner, a copy of inner.
    CUgraph inner = nullptr, outer = nullptr;
    CHECK(cuGraphCreate(&inner, 0));
    CHECK(cuGraphCreate(&outer, 0));
    const CUgraphNode words = append(inner, nullptr, set_words(step, 5));
    const CUgraphNode sum = append(inner, words, Addition(total, step).node());
    const CUgraphEdgeData edge{};
    const CUgraphNode first = append(outer, nullptr, Addition(total, other).node());
    CUgraphNodeParams copy = child(inner, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE);
    CUgraphNode copied = nullptr;
    CHECK(cuGraphAddNode(&copied, outer, &first, &edge, 1, &copy));
    REQUIRE(copy.graph.graph && copy.graph.graph != inner);
    const CUgraphNode moved = append(outer, copied, child(inner, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE), &edge);

    CUgraph held = nullptr;
    size_t count = 0;
    CHECK(cuGraphChildGraphNodeGetGraph(moved, &held));
    REQUIRE(held == inner);
    CUgraphNode nodes[4] = {};
    count = 4;
    CHECK(cuGraphGetNodes(inner, nodes, &count));
    REQUIRE(count == 2 && nodes[0] == words && nodes[1] == sum);
    FAILS(cuGraphDestroy(inner), CUDA_ERROR_INVALID_VALUE);
    refused(outer);

    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiate(&exec, outer, 0));
    REQUIRE(run(exec, total) == 110);
    CUgraphNodeParams more = set_words(step, 7);
    CHECK(cuGraphExecNodeSetParams(exec, words, &more));  // in the graph that was moved
    REQUIRE(run(exec, total) == 112);
    Addition again(total, other);
    CUgraphNodeParams hundred = again.node();
    CHECK(cuGraphExecNodeSetParams(exec, sum, &hundred));
    REQUIRE(run(exec, total) == 205);

    // The copy is exchanged for another graph of the same form.
    CUgraph third = nullptr;
    CHECK(cuGraphCreate(&third, 0));
    append(third, append(third, nullptr, set_words(step, 50)), Addition(total, step).node());
    CUgraphNodeParams exchanged = child(third, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE);
    CHECK(cuGraphExecNodeSetParams(exec, copied, &exchanged));
    REQUIRE(run(exec, total) == 250);

    CHECK(cuGraphDestroy(third));
    CHECK(cuGraphDestroy(outer));
    FAILS(cuGraphGetNodes(inner, nullptr, &count), CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(run(exec, total) == 250);  // lives on
    CHECK(cuGraphExecDestroy(exec));
}
