// A graph built by hand: nodes, edges, what is asked about them, launches and updates.
#include <algorithm>
#include <vector>

#include "tests/preload/program.h"

constexpr char kImage[] = "FAKE\nkernel fill params 8,4,4\n";

struct Built {
    CUgraph graph = nullptr;
    CUgraphNode empty = nullptr, zero = nullptr, kernel = nullptr;
};

// empty -> zero -> kernel, and empty -> kernel: ten words of 42, then three of 9.
Built build(CUcontext context, CUfunction fill, CUdeviceptr memory) {
    Built built;
    CHECK(cuGraphCreate(&built.graph, 0));
    CHECK(cuGraphAddEmptyNode(&built.empty, built.graph, nullptr, 0));
    CUDA_MEMSET_NODE_PARAMS words{};
    words.dst = memory;
    words.elementSize = 4;
    words.value = 42;
    words.width = 10;
    words.height = 1;
    CHECK(cuGraphAddMemsetNode(&built.zero, built.graph, &built.empty, 1, &words, context));

    CUdeviceptr behind = memory + 40;
    int value = 9, count = 3;
    void* parameters[] = {&behind, &value, &count};
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = fill;
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
    kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = parameters;
    const CUgraphNode before[] = {built.empty, built.zero};
    CHECK(cuGraphAddKernelNode(&built.kernel, built.graph, before, 2, &kernel));
    return built;
}

// Entries of lists beyond what there is become null.
void look_behind_lists(const Built& built) {
    const CUgraphNode other = reinterpret_cast<CUgraphNode>(0x770);
    CUgraphNode one[5], two[5];
    const auto fresh = [&] {
        std::fill_n(one, 5, other);
        std::fill_n(two, 5, other);
        return size_t{4};
    };
    size_t count = fresh();
    CHECK(cuGraphGetNodes(built.graph, one, &count));
    REQUIRE(count == 3 && one[2] && !one[3] && one[4] == other);
    count = fresh();
    CHECK(cuGraphGetRootNodes(built.graph, one, &count));
    REQUIRE(count == 1 && one[0] == built.empty && !one[1] && !one[3] && one[4] == other);
    count = fresh();
    CHECK(cuGraphGetEdges(built.graph, one, two, nullptr, &count));
    REQUIRE(count == 3 && one[2] && two[2] && !one[3] && !two[3] && two[4] == other);
    count = fresh();
    CHECK(cuGraphNodeGetDependencies(built.kernel, one, nullptr, &count));
    REQUIRE(count == 2 && one[1] && !one[2] && !one[3] && one[4] == other);
    count = fresh();
    FAILS(cuGraphGetNodes(reinterpret_cast<CUgraph>(other), one, &count), CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(one[0] == other);
}

void look_at(const Built& built) {
    size_t count = 0;
    CHECK(cuGraphGetNodes(built.graph, nullptr, &count));
    REQUIRE(count == 3);
    std::vector<CUgraphNode> nodes(1 << 20);  // more room than a reply has
    count = nodes.size();
    CHECK(cuGraphGetNodes(built.graph, nodes.data(), &count));
    REQUIRE(count == 3 && nodes[0] == built.empty && nodes[2] == built.kernel);
    look_behind_lists(built);
    count = 2;
    CHECK(cuGraphGetNodes(built.graph, nodes.data(), &count));
    REQUIRE(count == 2);

    CUgraphNode from[3] = {}, to[3] = {};
    CUgraphEdgeData data[3] = {};
    count = 3;
    CHECK(cuGraphGetEdges(built.graph, from, to, data, &count));
    REQUIRE(count == 3 && from[0] == built.empty && to[0] == built.zero && to[2] == built.kernel);

    CUgraphNodeType type{};
    CHECK(cuGraphNodeGetType(built.kernel, &type));
    REQUIRE(type == CU_GRAPH_NODE_TYPE_KERNEL);
    FAILS(cuGraphNodeGetType(reinterpret_cast<CUgraphNode>(0x770), &type), CUDA_ERROR_INVALID_HANDLE);
    CUDA_MEMSET_NODE_PARAMS words{};
    CHECK(cuGraphMemsetNodeGetParams(built.zero, &words));
    REQUIRE(words.value == 42);
}

void launch(const Built& built, CUdeviceptr memory, CUgraphExec exec) {
    unsigned words[16] = {};
    CHECK(cuMemsetD8(memory, 0, sizeof words));
    CHECK(cuGraphLaunch(exec, nullptr));
    CHECK(cuMemcpyDtoH(words, memory, sizeof words));
    REQUIRE(words[9] == 42 && words[10] == 9 && words[12] == 9 && words[13] == 0);

    CUgraphExecUpdateResultInfo info{};
    CHECK(cuGraphExecUpdate(exec, built.graph, &info));
    REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
}

// The reason comes back although the call fails.
void update_with_another(const Built& built, CUgraphExec exec) {
    CUgraph other = nullptr, child = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExecUpdateResultInfo info{};
    CHECK(cuGraphCreate(&other, 0));
    FAILS(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);

    size_t count = 0;
    CHECK(cuGraphAddChildGraphNode(&node, other, nullptr, 0, built.graph));
    CHECK(cuGraphChildGraphNodeGetGraph(node, &child));
    CHECK(cuGraphGetNodes(child, nullptr, &count));
    REQUIRE(count == 3);
    CHECK(cuGraphDestroy(other));
}

int main() {
    CUcontext context = preload::start();
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    CUdeviceptr memory = 0;
    CUgraphExec exec = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&fill, module, "fill"));
    CHECK(cuMemAlloc(&memory, 4096));
    const Built built = build(context, fill, memory);
    look_at(built);
    CHECK(cuGraphInstantiate(&exec, built.graph, 0));
    launch(built, memory, exec);
    update_with_another(built, exec);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(built.graph));
    FAILS(cuGraphDestroy(built.graph), CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuMemFree(memory));
    CHECK(cuModuleUnload(module));
}
