// functions: more host functions in graphs than a session has words, each with its own argument. The last
// graph's are called, and so is a stream's.
#include <atomic>

#include "tests/preload/program.h"

namespace {

std::atomic<uintptr_t> sum{0};
void add(void* number) { sum += reinterpret_cast<uintptr_t>(number); }

}  // namespace

int main() {
    constexpr uintptr_t kWords = 1u << 15;
    preload::start();
    CUstream stream = nullptr;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUgraph graph = nullptr;
    for (uintptr_t number = 1; number <= kWords + 1; number += 2) {
        if (graph) CHECK(cuGraphDestroy(graph));
        CHECK(cuGraphCreate(&graph, 0));
        CUgraphNode before = nullptr;
        for (const uintptr_t each : {number, number + 1}) {
            CUDA_HOST_NODE_PARAMS function{};
            function.fn = add;
            function.userData = reinterpret_cast<void*>(each);
            CHECK(cuGraphAddHostNode(&before, graph, before ? &before : nullptr, before ? 1 : 0, &function));
        }
    }
    CUgraphExec executable = nullptr;
    CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int i = 0; i < 3; ++i) CHECK(cuGraphLaunch(executable, stream));
    CHECK(cuLaunchHostFunc(stream, add, reinterpret_cast<void*>(1)));
    CHECK(cuStreamSynchronize(stream));
    REQUIRE(sum == 3 * (kWords + 1 + kWords + 2) + 1);
}
