// Streams, events, host functions, capture and graphs, and the per-thread default stream's twins.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/cudart/program.h"

using cudart_test::Image;

constexpr int kCount = 256;
constexpr size_t kBytes = kCount * sizeof(int);

void fill(int*, int, int) { std::abort(); }
void spin(std::atomic<uint64_t>*, uint64_t) { std::puts("never"), std::abort(); }
Image image("FAKE\nkernel fill params 8,4,4\nkernel spin params 8,8\n");

std::atomic<int> calls{0};
void count(void*) { ++calls; }
void count_callback(cudaStream_t, cudaError_t status, void*) { calls += status == cudaSuccess ? 10 : 1000; }

void order(int* device, int* host) {
    cudaStream_t first, second;
    cudaEvent_t event, timed, end;
    int least = 0, greatest = 0, priority = 1;
    unsigned flags = 9;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&first, cudaStreamNonBlocking, greatest));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaStreamGetPriority(first, &priority));
    CHECK(cudaStreamGetFlags(first, &flags));
    REQUIRE(priority == greatest && flags == cudaStreamNonBlocking);
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaEventCreate(&timed));
    CHECK(cudaEventCreate(&end));

    std::atomic<uint64_t>* gate;
    CHECK(cudaMallocHost(&gate, sizeof *gate));
    gate->store(0);
    CHECK(cudaEventRecord(timed, first));
    CHECK(cudart_test::launch(spin, dim3(1), dim3(1), 0, first, gate, uint64_t{1}));
    CHECK(cudart_test::launch(fill, dim3(1), dim3(256), 0, first, device, 3, kCount));
    CHECK(cudaEventRecord(event, first));
    CHECK(cudaStreamWaitEvent(second, event, 0));
    CHECK(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost, second));
    CHECK(cudaLaunchHostFunc(second, count, nullptr));
    CHECK(cudaStreamAddCallback(second, count_callback, nullptr, 0));
    REQUIRE(cudaStreamQuery(first) == cudaErrorNotReady && cudaEventQuery(event) == cudaErrorNotReady);
    REQUIRE(cudaPeekAtLastError() == cudaSuccess);  // an answer, no error
    REQUIRE(calls == 0);
    gate->store(1);
    CHECK(cudaStreamSynchronize(second));
    REQUIRE(calls == 11 && host[0] == 3 && host[kCount - 1] == 3);
    CHECK(cudaEventRecord(end, first));
    CHECK(cudaEventSynchronize(end));
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, timed, end));
    REQUIRE(milliseconds >= 0);
    FAILS(cudaEventElapsedTime(&milliseconds, event, event), cudaErrorInvalidResourceHandle);
    CHECK(cudaEventDestroy(event));
    CHECK(cudaStreamDestroy(first));
    CHECK(cudaStreamDestroy(second));
    CHECK(cudaFreeHost(gate));
}

cudaGraph_t captured(cudaStream_t stream, int* device, int* host) {
    cudaGraph_t graph;
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudart_test::launch(fill, dim3(1), dim3(256), 0, stream, device, 21, kCount));
    CHECK(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamIsCapturing(stream, &status));
    REQUIRE(status == cudaStreamCaptureStatusActive);
    CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

void graphs(int* device, int* host) {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaGraph_t graph = captured(stream, device, host);
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    REQUIRE(nodes == 2);
    cudaGraphNode_t copy, kernel, other;
    cudaMemcpy3DParms shape{};
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, host + kCount, device, kBytes,
                                   cudaMemcpyDeviceToHost));
    CHECK(cudaGraphMemcpyNodeGetParams(copy, &shape));
    REQUIRE(shape.kind == cudaMemcpyDeviceToHost && shape.extent.width == kBytes &&
            shape.dstPtr.ptr == host + kCount);
    int value = 22, count_of = kCount;
    void* arguments[] = {&device, &value, &count_of};
    cudaKernelNodeParams launch{};
    launch.func = reinterpret_cast<void*>(fill);
    launch.gridDim = dim3(1, 1, 1), launch.blockDim = dim3(64, 2, 2), launch.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&kernel, graph, &copy, 1, &launch));
    cudaKernelNodeParams asked{};
    CHECK(cudaGraphKernelNodeGetParams(kernel, &asked));
    REQUIRE(asked.func == launch.func && asked.blockDim.y == 2);
    launch.func = reinterpret_cast<void*>(&count);
    FAILS(cudaGraphAddKernelNode(&other, graph, nullptr, 0, &launch), cudaErrorInvalidResourceHandle);
    FAILS(
        cudaGraphAddMemcpyNode1D(&other, graph, nullptr, 0, host, device, 4, static_cast<cudaMemcpyKind>(9)),
        cudaErrorInvalidValue);
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaMemset(device, 0, kBytes));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(host, device, 4, cudaMemcpyDeviceToHost));
    REQUIRE(host[0] == 22 || host[0] == 21);  // the captured branch and the other have no order
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
}

extern "C" cudaError_t cudaMemsetAsync_ptsz(void*, int, size_t, cudaStream_t);
extern "C" cudaError_t cudaMemcpy_ptds(void*, const void*, size_t, cudaMemcpyKind);
extern "C" cudaError_t cudaStreamQuery_ptsz(cudaStream_t);

// Work of the per-thread default stream does not wait for the legacy one's, nor show in another thread's.
void per_thread(int* device, int* host) {
    cudaStream_t blocking;
    std::atomic<uint64_t>* gate;
    CHECK(cudaStreamCreateWithFlags(&blocking, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&gate, sizeof *gate));
    gate->store(0);
    CHECK(cudart_test::launch(spin, dim3(1), dim3(1), 0, cudaStreamPerThread, gate, uint64_t{1}));
    REQUIRE(cudaStreamQuery_ptsz(nullptr) == cudaErrorNotReady);
    std::thread other([&] {
        CHECK(cudaMemsetAsync_ptsz(device, 0x11, kBytes, nullptr));
        CHECK(cudaMemcpy_ptds(host, device, kBytes, cudaMemcpyDeviceToHost));
        REQUIRE(cudaStreamQuery_ptsz(nullptr) == cudaSuccess);
    });
    other.join();
    REQUIRE(host[0] == 0x11111111);
    gate->store(1);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamDestroy(blocking));
}

// Only managed memory can be attached, in one way at a time, and to one stream alone only where that is one
// stream.
void attach(int* device, int* host) {
    int* managed;
    cudaStream_t stream;
    CHECK(cudaMallocManaged(&managed, kBytes, cudaMemAttachHost));
    CHECK(cudaStreamCreate(&stream));
    for (const unsigned how : {cudaMemAttachGlobal, cudaMemAttachHost, cudaMemAttachSingle})
        CHECK(cudaStreamAttachMemAsync(stream, managed, 0, how));
    for (const unsigned how : {cudaMemAttachGlobal, cudaMemAttachHost})
        CHECK(cudaStreamAttachMemAsync(nullptr, managed, 0, how));
    CHECK(cudaStreamAttachMemAsync(cudaStreamPerThread, managed, 0, cudaMemAttachSingle));
    FAILS(cudaStreamAttachMemAsync(nullptr, managed, 0, cudaMemAttachSingle), cudaErrorInvalidValue);
    FAILS(cudaStreamAttachMemAsync(cudaStreamLegacy, managed, 0, cudaMemAttachSingle), cudaErrorInvalidValue);
    FAILS(cudaStreamAttachMemAsync(stream, managed, 0, 0), cudaErrorInvalidValue);
    FAILS(cudaStreamAttachMemAsync(stream, managed, 0, cudaMemAttachHost | cudaMemAttachSingle),
          cudaErrorInvalidValue);
    FAILS(cudaStreamAttachMemAsync(stream, device, 0, cudaMemAttachSingle), cudaErrorInvalidValue);
    FAILS(cudaStreamAttachMemAsync(stream, host, 0, cudaMemAttachHost), cudaErrorInvalidValue);
    FAILS(cudaStreamAttachMemAsync(stream, &managed, 0, cudaMemAttachHost), cudaErrorInvalidValue);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(managed));
}

int main() {
    image.kernel(fill, "fill").kernel(spin, "spin").end();
    int *device, *host;
    CHECK(cudaMalloc(&device, kBytes));
    CHECK(cudaHostAlloc(reinterpret_cast<void**>(&host), 2 * kBytes, cudaHostAllocDefault));
    order(device, host);
    graphs(device, host);
    per_thread(device, host);
    attach(device, host);
    return 0;
}
