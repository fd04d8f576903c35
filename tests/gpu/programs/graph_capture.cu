// Graphs: captured from streams that fork and join, launched often, updated, and built by hand
// from kernel, copy, memset and host nodes.
#include <vector>

#include "program.h"

constexpr int kCount = 4096;
constexpr unsigned kBytes = kCount * sizeof(int);

__global__ void advance(int* data, int step) { data[blockIdx.x * blockDim.x + threadIdx.x] += step; }
__global__ void join(const int* a, const int* b, int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i] * 2 + b[i];
}

void CUDART_CB count_up(void* state) { ++*static_cast<int*>(state); }

cudaGraph_t capture(cudaStream_t main, cudaStream_t side, int* a, int* b, int* out, int* host, int step,
                    int* calls) {
    cudaEvent_t fork, done;
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal));
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamIsCapturing(main, &status));
    advance<<<kCount / 256, 256, 0, main>>>(a, step);
    CHECK(cudaEventRecord(fork, main));
    CHECK(cudaStreamWaitEvent(side, fork, 0));
    advance<<<kCount / 256, 256, 0, side>>>(b, step + 1);
    CHECK(cudaEventRecord(done, side));
    CHECK(cudaStreamWaitEvent(main, done, 0));
    join<<<kCount / 256, 256, 0, main>>>(a, b, out);
    CHECK(cudaMemcpyAsync(host, out, kBytes, cudaMemcpyDeviceToHost, main));
    CHECK(cudaLaunchHostFunc(main, count_up, calls));
    CHECK(cudaStreamEndCapture(main, &graph));
    CHECK(cudaEventDestroy(fork));
    CHECK(cudaEventDestroy(done));
    std::printf("capturing: %d\n", static_cast<int>(status));
    return graph;
}

void captured(Result& result, int* a, int* b, int* out, int* host) {
    cudaStream_t main, side;
    CHECK(cudaStreamCreate(&main));
    CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    CHECK(cudaMemset(a, 0, kBytes));
    CHECK(cudaMemset(b, 0, kBytes));
    CHECK(cudaDeviceSynchronize());
    int calls = 0;
    cudaGraph_t graph = capture(main, side, a, b, out, host, 1, &calls);
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    std::printf("captured nodes: %zu\n", nodes);
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 100; ++i) CHECK(cudaGraphLaunch(executable, main));
    CHECK(cudaStreamSynchronize(main));
    std::printf("after 100 launches: %d, host calls %d\n", host[kCount - 1], calls);
    result.expect(host[0] == 400 && host[kCount - 1] == 400 && calls == 100, "captured graph");

    cudaGraph_t changed = capture(main, side, a, b, out, host, 10, &calls);
    cudaGraphExecUpdateResultInfo information = {};
    CHECK(cudaGraphExecUpdate(executable, changed, &information));
    std::printf("update: %d\n", static_cast<int>(information.result));
    for (int i = 0; i < 10; ++i) CHECK(cudaGraphLaunch(executable, main));
    CHECK(cudaStreamSynchronize(main));
    std::printf("after the update: %d, host calls %d\n", host[7], calls);
    result.expect(host[7] == (100 + 100) * 2 + (200 + 110) && calls == 110, "updated graph");
    result.fold(host, kBytes);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphDestroy(changed));
    CHECK(cudaStreamDestroy(main));
    CHECK(cudaStreamDestroy(side));
}

void explicitly(Result& result, int* a, int* b, int* out, int* host) {
    cudaGraph_t graph;
    cudaGraphNode_t zero, upload, kernel, download, call;
    CHECK(cudaGraphCreate(&graph, 0));
    std::vector<int> source(kCount);
    for (int i = 0; i < kCount; ++i) source[i] = i;
    cudaMemsetParams memset = {};
    memset.dst = b, memset.value = 0x01010101, memset.elementSize = 4, memset.width = kCount,
    memset.height = 1;
    CHECK(cudaGraphAddMemsetNode(&zero, graph, nullptr, 0, &memset));
    CHECK(cudaGraphAddMemcpyNode1D(&upload, graph, nullptr, 0, a, source.data(), kBytes,
                                   cudaMemcpyHostToDevice));
    void* arguments[] = {&a, &b, &out};
    cudaKernelNodeParams parameters = {};
    parameters.func = reinterpret_cast<void*>(join);
    parameters.gridDim = dim3(kCount / 256), parameters.blockDim = dim3(256),
    parameters.kernelParams = arguments;
    const cudaGraphNode_t before[] = {zero, upload};
    CHECK(cudaGraphAddKernelNode(&kernel, graph, before, 2, &parameters));
    CHECK(cudaGraphAddMemcpyNode1D(&download, graph, &kernel, 1, host, out, kBytes, cudaMemcpyDeviceToHost));
    int calls = 0;
    cudaHostNodeParams host_call = {};
    host_call.fn = count_up, host_call.userData = &calls;
    CHECK(cudaGraphAddHostNode(&call, graph, &download, 1, &host_call));
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 5; ++i) CHECK(cudaGraphLaunch(executable, cudaStreamPerThread));
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    bool right = calls == 5;
    for (int i = 0; i < kCount; ++i) right &= host[i] == i * 2 + 0x01010101;
    result.expect(right, "explicit graph");

    void* swapped[] = {&b, &a, &out};
    parameters.kernelParams = swapped;
    CHECK(cudaGraphExecKernelNodeSetParams(executable, kernel, &parameters));
    CHECK(cudaGraphLaunch(executable, cudaStreamPerThread));
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    result.expect(host[9] == 0x01010101 * 2 + 9 && calls == 6, "changed kernel node");
    result.fold(host, kBytes);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
}

__global__ void add_up(const int* in, int* sum) { atomicAdd(sum, in[blockIdx.x * blockDim.x + threadIdx.x]); }

// What a host function of the graph finds in a local variable that the graph copied to, and sets back.
struct Local {
    int* sum;
    int right, wrong;
};
void CUDART_CB look(void* data) {
    auto& local = *static_cast<Local*>(data);
    ++(*local.sum == kCount * (kCount - 1) / 2 ? local.right : local.wrong);
    *local.sum = 0;
}

// A sum of what is on the stack, back to the stack: captured, cloned, and built by hand.
void of_locals(Result& result, int* in_device, int* sum_device) {
    int in[kCount], sum = 0;
    for (int i = 0; i < kCount; ++i) in[i] = i;
    Local local{&sum, 0, 0};
    cudaStream_t stream;
    cudaGraph_t graphs[3];
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(in_device, in, kBytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemsetAsync(sum_device, 0, sizeof sum, stream));
    add_up<<<kCount / 256, 256, 0, stream>>>(in_device, sum_device);
    CHECK(cudaMemcpyAsync(&sum, sum_device, sizeof sum, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaLaunchHostFunc(stream, look, &local));
    CHECK(cudaStreamEndCapture(stream, &graphs[0]));
    CHECK(cudaGraphClone(&graphs[1], graphs[0]));
    cudaGraphNode_t upload, zero, kernel, download, call;
    CHECK(cudaGraphCreate(&graphs[2], 0));
    CHECK(cudaGraphAddMemcpyNode1D(&upload, graphs[2], nullptr, 0, in_device, in, kBytes,
                                   cudaMemcpyHostToDevice));
    cudaMemsetParams memset = {};
    memset.dst = sum_device, memset.elementSize = 4, memset.width = 1, memset.height = 1;
    CHECK(cudaGraphAddMemsetNode(&zero, graphs[2], nullptr, 0, &memset));
    void* arguments[] = {&in_device, &sum_device};
    cudaKernelNodeParams parameters = {};
    parameters.func = reinterpret_cast<void*>(add_up);
    parameters.gridDim = dim3(kCount / 256), parameters.blockDim = dim3(256),
    parameters.kernelParams = arguments;
    const cudaGraphNode_t before[] = {upload, zero};
    CHECK(cudaGraphAddKernelNode(&kernel, graphs[2], before, 2, &parameters));
    CHECK(cudaGraphAddMemcpyNode1D(&download, graphs[2], &kernel, 1, &sum, sum_device, sizeof sum,
                                   cudaMemcpyDeviceToHost));
    cudaHostNodeParams host_call = {};
    host_call.fn = look, host_call.userData = &local;
    CHECK(cudaGraphAddHostNode(&call, graphs[2], &download, 1, &host_call));
    for (cudaGraph_t graph : graphs) {
        size_t nodes = 0;
        CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
        cudaGraphExec_t executable;
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
        for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaStreamSynchronize(stream));
        std::printf("of locals: %zu nodes, %d right, %d wrong\n", nodes, local.right, local.wrong);
        CHECK(cudaGraphExecDestroy(executable));
        CHECK(cudaGraphDestroy(graph));
    }
    result.expect(local.right == 9 && local.wrong == 0, "copies from and to locals");
    CHECK(cudaStreamDestroy(stream));
}

int main() {
    Result result;
    int *a, *b, *out, *host;
    CHECK(cudaMalloc(&a, kBytes));
    CHECK(cudaMalloc(&b, kBytes));
    CHECK(cudaMalloc(&out, kBytes));
    CHECK(cudaMallocHost(&host, kBytes));
    captured(result, a, b, out, host);
    explicitly(result, a, b, out, host);
    of_locals(result, a, b);
    return result.finish();
}
