// Graphs launched again and again: captured with two branches and fills in between, on two streams in turn,
// with a child graph, and with a copy from the host (graph_steps.h).
//
//     graph_stops [LAUNCHES [ROUNDS [BLOCKS]]]
#include "graph_steps.h"

// The graph itself is gone when it is launched.
void captured(const Work& work, int launches, Result& result) {
    Streams streams;
    Arrays arrays(work);
    cudaGraph_t graph = capture(streams, arrays);
    cudaGraphExec_t exec = nullptr;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    for (int i = 0; i < launches; ++i) {
        CHECK(cudaGraphLaunch(exec, streams.one));
        if (i % 4 == 3) CHECK(cudaStreamSynchronize(streams.one));
    }
    for (int i = 0; i < launches; ++i) on_host(arrays);
    CHECK(cudaStreamSynchronize(streams.one));
    arrays.compare(result, "captured");
    // Each launch is behind the one before it, on whichever stream.
    for (int i = 0; i < launches; ++i) CHECK(cudaGraphLaunch(exec, i % 2 ? streams.one : streams.two));
    for (int i = 0; i < launches; ++i) on_host(arrays);
    CHECK(cudaDeviceSynchronize());
    arrays.compare(result, "on two streams in turn");
    CHECK(cudaGraphLaunch(exec, streams.one));
    on_host(arrays);
    CHECK(cudaGraphExecDestroy(exec));  // while it runs
    CHECK(cudaStreamSynchronize(streams.one));
    arrays.compare(result, "destroyed while it runs");
}

// A captured graph as the child of another one; and a graph with a copy from the host between its kernels.
void nested(const Work& work, int launches, Result& result) {
    Streams streams;
    Arrays arrays(work);
    cudaGraph_t child = capture(streams, arrays), graph = nullptr;
    cudaGraphNode_t inside = nullptr, copy = nullptr;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t first = add(graph, arrays, nullptr, 3, 0, 19, 1);
    CHECK(cudaGraphAddChildGraphNode(&inside, graph, &first, 1, child));
    cudaGraphNode_t last = add(graph, arrays, &inside, 0, 3, 21, 2);
    CHECK(cudaGraphDestroy(child));
    cudaGraphExec_t exec = nullptr;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < launches; ++i) CHECK(cudaGraphLaunch(exec, streams.one));
    for (int i = 0; i < launches; ++i) {
        arrays.step_on_host(3, 0, 19, 1);
        on_host(arrays);
        arrays.step_on_host(0, 3, 21, 2);
    }
    CHECK(cudaStreamSynchronize(streams.one));
    arrays.compare(result, "with a child graph");
    CHECK(cudaGraphExecDestroy(exec));

    unsigned* on_host_side = nullptr;
    CHECK(cudaMallocHost(&on_host_side, arrays.bytes()));
    std::memset(on_host_side, 0x17, arrays.bytes());
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &last, 1, arrays.on_device[1], on_host_side, arrays.bytes(),
                                   cudaMemcpyHostToDevice));
    add(graph, arrays, &copy, 1, 3, 23, 3);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < launches; ++i) CHECK(cudaGraphLaunch(exec, streams.one));
    for (int i = 0; i < launches; ++i) {
        arrays.step_on_host(3, 0, 19, 1);
        on_host(arrays);
        arrays.step_on_host(0, 3, 21, 2);
        std::memset(arrays.expected[1].data(), 0x17, arrays.bytes());
        arrays.step_on_host(1, 3, 23, 3);
    }
    CHECK(cudaStreamSynchronize(streams.one));
    arrays.compare(result, "with a copy from the host");
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaFreeHost(on_host_side));
    CHECK(cudaGraphDestroy(graph));
}

int main(int argc, char** argv) {
    const Arguments given(argc, argv);
    const Work work(given.blocks, given.rounds);
    Result result;
    captured(work, given.launches, result);
    nested(work, given.launches, result);
    return result.finish();
}
