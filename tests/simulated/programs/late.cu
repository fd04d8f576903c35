// A program that launches its kernels round after round, as its standard input says, and checks the result:
//
//   late [GRAPH]     each line "go" is a round, answered by "round N"; "end" ends with "right" or "wrong"
//
// -DVARIABLES: its code uses a variable of the image. Otherwise it has some that nothing uses.
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int kBlocks = 64, kThreads = 32, kCount = kBlocks * kThreads, kLaunches = 3;
constexpr int kLarge = 60 << 10;  // bytes of shared memory: more than a kernel has without asking

#define CHECK(call)                                                     \
    do {                                                                \
        const cudaError_t status = (call);                              \
        if (status != cudaSuccess) {                                    \
            std::printf("%s: %s\n", #call, cudaGetErrorString(status)); \
            return 1;                                                   \
        }                                                               \
    } while (false)

}  // namespace

__device__ int runs;
__constant__ int table[4];

__global__ void add(int* data, int what) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    data[i] += what;
#ifdef VARIABLES
    if (threadIdx.x == 0) atomicAdd(&runs, 1);
#endif
}

__global__ void add_by_shared(int* data) {
    extern __shared__ int scratch[];
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    scratch[kLarge / 4 - 1 - threadIdx.x] = data[i];
    __syncthreads();
    data[i] = scratch[kLarge / 4 - 1 - threadIdx.x] + 1000;
}

int main(int count, char** arguments) {
    int* data = nullptr;
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    const bool with_graph = count > 1 && !std::strcmp(arguments[1], "GRAPH");
    CHECK(cudaMalloc(&data, kCount * sizeof(int)));
    CHECK(cudaMemset(data, 0, kCount * sizeof(int)));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaFuncSetAttribute(add_by_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, kLarge));
    if (with_graph) {
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        add<<<kBlocks, kThreads, 0, stream>>>(data, 1000000);
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
    }
    int rounds = 0;
    char line[16];
    while (std::fgets(line, sizeof line, stdin) && !std::strcmp(line, "go\n")) {
        for (int i = 0; i < kLaunches; ++i) add<<<kBlocks, kThreads, 0, stream>>>(data, 1);
        add_by_shared<<<kBlocks, kThreads, kLarge, stream>>>(data);
        if (with_graph) CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
        std::printf("round %d\n", ++rounds);
        std::fflush(stdout);
    }
    std::vector<int> found(kCount);
    CHECK(cudaMemcpy(found.data(), data, kCount * sizeof(int), cudaMemcpyDeviceToHost));
    const int wanted = rounds * (kLaunches + 1000 + (with_graph ? 1000000 : 0));
    bool right = true;
    for (const int each : found) right = right && each == wanted;
#ifdef VARIABLES
    int blocks = 0;
    CHECK(cudaMemcpyFromSymbol(&blocks, runs, sizeof blocks));
    right = right && blocks == rounds * (kLaunches + (with_graph ? 1 : 0)) * kBlocks;
#endif
    std::printf(right ? "right\n" : "wrong\n");
    return right ? 0 : 1;
}
