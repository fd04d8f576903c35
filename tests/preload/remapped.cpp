// Pageable memory in graphs: nodes made by hand and captured, neighbours that share pages, memory
// that is freed, grown or registered later, and what cannot be remapped.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/preload/program.h"

constexpr size_t kPage = 4096;

CUstream stream = nullptr;
CUdeviceptr device = 0;

CUDA_MEMCPY3D to_device(const void* host, size_t bytes) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = device;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return copy;
}

CUDA_MEMCPY3D from_device(void* host, size_t bytes) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = device;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = host;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return copy;
}

void run(CUgraphExec exec) {
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamSynchronize(stream));
}

// in -> device -> out. What the host writes later is what the graph copies.
void by_hand(CUcontext context) {
    std::vector<int> in(3000), other(500000), out(3000);
    CUgraph graph = nullptr;
    CUgraphNode up = nullptr, down = nullptr;
    CUgraphExec exec = nullptr;
    const size_t bytes = in.size() * sizeof(int);
    CHECK(cuGraphCreate(&graph, 0));
    CUDA_MEMCPY3D copy = to_device(in.data(), bytes);
    CHECK(cuGraphAddMemcpyNode(&up, graph, nullptr, 0, &copy, context));
    copy = from_device(out.data(), bytes);
    CHECK(cuGraphAddMemcpyNode(&down, graph, &up, 1, &copy, context));
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    for (int round = 1; round < 4; ++round) {
        for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i) * round;
        run(exec);
        REQUIRE(in == out);
    }
    CUDA_MEMCPY3D told{};
    CHECK(cuGraphMemcpyNodeGetParams(up, &told));
    REQUIRE(told.srcHost == in.data() && told.WidthInBytes == bytes);
    CHECK(cuGraphMemcpyNodeGetParams(down, &told));
    REQUIRE(told.dstHost == out.data());

    other[2999] = 77;
    copy = to_device(other.data(), bytes);
    CHECK(cuGraphExecMemcpyNodeSetParams(exec, up, &copy, context));
    CHECK(cuGraphMemcpyNodeSetParams(up, &copy));
    run(exec);
    REQUIRE(out[2999] == 77);
    CHECK(cuGraphMemcpyNodeGetParams(up, &told));
    REQUIRE(told.srcHost == other.data());
    // To the application it is pageable memory still.
    unsigned type = 0;
    FAILS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                reinterpret_cast<CUdeviceptr>(in.data())),
          CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemHostUnregister(in.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    other.resize(2000000, 5);  // may move: the new place is remapped anew
    REQUIRE(other[2999] == 77 && other[1999999] == 5);
    copy = to_device(other.data(), bytes);
    CHECK(cuGraphExecMemcpyNodeSetParams(exec, up, &copy, context));
    run(exec);
    REQUIRE(out[2999] == 77 && out[0] == other[0]);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
}

// Slices that end within a page, then the whole, then the whole again as registered memory.
void captured() {
    constexpr size_t kSlices = 7, kSlice = 5000;
    std::vector<char> in(kSlices * kSlice), out(in.size());
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (size_t i = 0; i < kSlices; ++i)
        CHECK(cuMemcpyHtoDAsync(device + i * kSlice, in.data() + i * kSlice, kSlice, stream));
    CHECK(cuMemcpyDtoHAsync(out.data(), device, out.size(), stream));
    CHECK(cuMemcpyAsync(device, reinterpret_cast<CUdeviceptr>(in.data()), in.size(), stream));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < 3; ++round) {
        for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<char>(i * 7 + round);
        run(exec);
        REQUIRE(in == out);
    }
    CHECK(cuMemHostRegister(in.data(), in.size(), 0));
    CUdeviceptr registered = 0;
    CHECK(cuMemHostGetDevicePointer(&registered, in.data(), 0));
    in[0] = 99;
    CHECK(cuMemcpyDtoD(device, registered, 16));
    char seen = 0;
    CHECK(cuMemcpyDtoH(&seen, device, 1));
    REQUIRE(seen == 99);
    CHECK(cuMemHostUnregister(in.data()));
    in[1] = 98;
    run(exec);
    REQUIRE(out[1] == 98);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
}

// A neighbour of registered memory: its pages must outlive the registration.
void beside_registered() {
    std::vector<char> both(5 * kPage);
    char* first = both.data();
    char* second = first + 2 * kPage + 100;
    CHECK(cuMemHostRegister(first, 2 * kPage + 100, 0));
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuMemcpyHtoDAsync(device, second, 2 * kPage, stream));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    CHECK(cuMemHostUnregister(first));
    std::memset(first, 1, 2 * kPage + 100);
    std::memset(second, 2, 2 * kPage);
    run(exec);
    std::vector<char> seen(2 * kPage);
    CHECK(cuMemcpyDtoH(seen.data(), device, seen.size()));
    REQUIRE(seen.front() == 2 && seen.back() == 2 && first[2 * kPage + 99] == 1);
    CHECK(cuMemHostRegister(first, 2 * kPage, 0));
    CHECK(cuMemHostRegister(first + 2 * kPage, 200, 0));
    CHECK(cuMemHostUnregister(first));
    CHECK(cuMemHostUnregister(first + 2 * kPage));
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
}

// The same addresses again and again, each time other memory; the server must not keep it all.
void again_and_again() {
    constexpr size_t kBytes = 8u << 20;
    for (int round = 0; round < 64; ++round) {
        void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        std::memset(memory, round, kBytes);
        CUgraph graph = nullptr;
        CUgraphExec exec = nullptr;
        CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CHECK(cuMemcpyHtoDAsync(device, memory, kBytes, stream));
        CHECK(cuStreamEndCapture(stream, &graph));
        CHECK(cuGraphInstantiate(&exec, graph, 0));
        run(exec);
        char seen = 0;
        CHECK(cuMemcpyDtoH(&seen, device + kBytes - 1, 1));
        REQUIRE(seen == round);
        CHECK(cuGraphExecDestroy(exec));
        CHECK(cuGraphDestroy(graph));
        munmap(memory, kBytes);
    }
}

// What a host function of the graph finds on the stack, and leaves there.
struct Seen {
    int* local;
    std::vector<int> values;
};
void CUDA_CB look(void* data) {
    auto& seen = *static_cast<Seen*>(data);
    seen.values.push_back(*seen.local);
    *seen.local = -1;
}

size_t nodes_of(CUgraph graph) {
    size_t count = 0;
    CHECK(cuGraphGetNodes(graph, nullptr, &count));
    return count;
}

// Stacks are no memory that can be remapped: a result goes there through the graph, and a host function
// behind it sees it.
void stack_captured() {
    int in[2] = {}, local = 0;
    Seen seen{&local, {}};
    CUgraph graph = nullptr, copied = nullptr;
    CUgraphExec exec = nullptr, exec_of_copy = nullptr;
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuMemcpyHtoDAsync(device, in, sizeof in, stream));
    CHECK(cuMemcpyDtoHAsync(&local, device + sizeof(int), sizeof local, stream));
    CHECK(cuLaunchHostFunc(stream, look, &seen));
    CHECK(cuStreamEndCapture(stream, &graph));
    REQUIRE(nodes_of(graph) == 3);
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    CHECK(cuGraphClone(&copied, graph));
    CHECK(cuGraphInstantiate(&exec_of_copy, copied, 0));
    for (int round = 0; round < 6; ++round) {
        in[1] = 10 + round;
        run(round % 2 ? exec_of_copy : exec);
        REQUIRE(local == -1);
    }
    REQUIRE((seen.values == std::vector<int>{10, 11, 12, 13, 14, 15}));
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphExecDestroy(exec_of_copy));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuGraphDestroy(copied));
}

// By hand, from constants and with gaps between rows.
void stack_by_hand(CUcontext context) {
    static const char kText[] = "constants";
    char rows[3][8] = {};
    CUgraph graph = nullptr;
    CUgraphNode up = nullptr, down = nullptr;
    CUgraphExec exec = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    CUDA_MEMCPY3D copy = to_device(kText, sizeof kText - 1);
    CHECK(cuGraphAddMemcpyNode(&up, graph, nullptr, 0, &copy, context));
    copy = from_device(rows, 3);
    copy.dstPitch = 8;
    copy.dstXInBytes = 1;
    copy.Height = 3;
    CHECK(cuGraphAddMemcpyNode(&down, graph, &up, 1, &copy, context));
    REQUIRE(nodes_of(graph) == 2);
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    run(exec);
    REQUIRE(std::memcmp(rows, "\0con\0\0\0\0\0sta\0\0\0\0\0nts\0\0\0\0", sizeof rows) == 0);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
}

// A program that captures in a loop uses no more memory or host functions for it.
void stack_again_and_again() {
    for (int round = 0; round < 100; ++round) {
        int local = round;
        CUgraph graph = nullptr;
        CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CHECK(cuMemcpyHtoDAsync(device, &local, sizeof local, stream));
        CHECK(cuStreamEndCapture(stream, &graph));
        CHECK(cuGraphDestroy(graph));
    }
}

void refused(CUcontext context) {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    CUDA_MEMCPY3D copy = from_device(const_cast<char*>("text"), 4);  // cannot be written
    FAILS(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, context), CUDA_ERROR_NOT_SUPPORTED);
    void* const nothing = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    copy = to_device(nothing, 4);
    FAILS(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, context), CUDA_ERROR_NOT_SUPPORTED);
    CHECK(cuGraphDestroy(graph));
}

// The heap's bookkeeping beside a remapped buffer is the child's own.
void in_child() {
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 1; i < 2000; ++i) std::vector<char> some(static_cast<size_t>(i) * 13, 1);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main() {
    CUcontext context = preload::start();
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&device, 16u << 20));
    by_hand(context);
    captured();
    beside_registered();
    again_and_again();
    stack_captured();
    stack_by_hand(context);
    stack_again_and_again();
    refused(context);
    in_child();
    std::vector<int> kept(1000, 3);
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    CUDA_MEMCPY3D copy = to_device(kept.data(), 4000);
    CHECK(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, context));
    CHECK(cuDevicePrimaryCtxReset(0));
    for (int value : kept) REQUIRE(value == 3);  // its own pages again
}
