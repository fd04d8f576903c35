// A graph made by hand that is changed between its launches: one node, and as a whole (graph_steps.h).
//
//     graph_changes [LAUNCHES [ROUNDS [BLOCKS]]]
#include <algorithm>
#include <utility>

#include "graph_steps.h"

// What the program reads of a node is what it set.
bool says(cudaGraphNode_t node, unsigned by, unsigned plus) {
    cudaKernelNodeParams set{};
    CHECK(cudaGraphKernelNodeGetParams(node, &set));
    return *static_cast<unsigned*>(set.kernelParams[2]) == by &&
           *static_cast<unsigned*>(set.kernelParams[3]) == plus;
}

constexpr int kChanges = 5;

void changed(const Work& work, int launches, Result& result) {
    Streams streams;
    Arrays arrays(work);
    cudaGraph_t graph = nullptr;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t first = add(graph, arrays, nullptr, 0, 1, 3, 1);
    cudaGraphNode_t last = add(graph, arrays, &first, 1, 0, 5, 2);
    cudaGraphExec_t exec = nullptr;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    std::vector<std::pair<unsigned, unsigned>> launched;
    const auto launch = [&](unsigned by, unsigned plus) {
        CHECK(cudaGraphLaunch(exec, streams.one));
        launched.emplace_back(by, plus);
    };
    const auto compare = [&](const char* what) {
        CHECK(cudaStreamSynchronize(streams.one));
        for (const auto& [by, plus] : launched) {
            arrays.step_on_host(0, 1, by, plus);
            arrays.step_on_host(1, 0, 5, 2);
        }
        launched.clear();
        arrays.compare(result, what);
    };
    launch(3, 1);
    for (int i = 0; i < launches; ++i) {
        if (i % 3 == 0 && i < 3 * kChanges) {  // the launch before it is under way
            Parameters parameters(arrays, 0, 1, 21, 100 + i);
            const cudaKernelNodeParams node = parameters.node(arrays);
            CHECK(cudaGraphExecKernelNodeSetParams(exec, first, &node));
        }
        launch(21, 100 + std::min(i / 3, kChanges - 1) * 3);
    }
    compare("changed between launches");
    result.expect(says(first, 3, 1) && says(last, 5, 2), "the graph's own nodes");

    Parameters parameters(arrays, 0, 1, 23, 9);
    const cudaKernelNodeParams node = parameters.node(arrays);
    CHECK(cudaGraphKernelNodeSetParams(first, &node));
    result.expect(says(first, 23, 9), "the changed node");
    cudaGraphExecUpdateResultInfo info{};
    CHECK(cudaGraphExecUpdate(exec, graph, &info));
    for (int i = 0; i < launches; ++i) launch(23, 9);
    compare("updated as a whole");
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
}

int main(int argc, char** argv) {
    const Arguments given(argc, argv);
    const Work work(given.blocks, given.rounds);
    Result result;
    changed(work, given.launches, result);
    return result.finish();
}
