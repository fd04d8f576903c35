// What programs of CUDA 11.8 and 12 find in their runtime: functions and structs that CUDA 13 changed, as
// NVIDIA's headers of then have them. SMT_CUDART_MAJOR is the runtime that this one is linked with.
#include "runtime/device/simulated/cudart/older.h"

#include <algorithm>
#include <cstring>

#include "tests/cudart/program.h"

using cudart_test::Image;
using namespace smt::cudart;

// Sizes and places in the headers of 11.8.89, 12.4.127 and 12.9.79.
static_assert(sizeof(PointerAttributes12) == 24 && sizeof(ResourceDesc12) == 64);
static_assert(sizeof(ResourceViewDesc12) == 48 && sizeof(FuncAttributes11) == 56);
static_assert(sizeof(TextureDesc11) == 68 && sizeof(DeviceProp11) == 728 && sizeof(DeviceProp12) == 1032);
static_assert(offsetof(DeviceProp12, clockRate) == 348 && offsetof(DeviceProp12, totalConstMem) == 352);
static_assert(offsetof(DeviceProp12, multiProcessorCount) == 388);
static_assert(offsetof(DeviceProp12, maxTexture2DGather) == 448);
static_assert(offsetof(DeviceProp12, memoryClockRate) == 608);
static_assert(offsetof(DeviceProp12, cooperativeMultiDeviceLaunch) == 692);
static_assert(offsetof(DeviceProp12, reservedSharedMemPerBlock) == 720);
static_assert(offsetof(DeviceProp12, clusterLaunch) == 772);

// The header of CUDA 13 has others of these names, so these go by the symbol.
#define OLDER(symbol, ...) extern "C" cudaError_t older_##symbol(__VA_ARGS__) __asm__(#symbol)
OLDER(cudaGetDeviceProperties, DeviceProp11*, int);
OLDER(cudaGetDeviceProperties_v2, DeviceProp12*, int);
OLDER(cudaPointerGetAttributes, PointerAttributes12*, const void*);
OLDER(cudaFuncGetAttributes, FuncAttributes11*, const void*);
OLDER(cudaMemAdvise, const void*, size_t, cudaMemoryAdvise, int);
OLDER(cudaMemPrefetchAsync, const void*, size_t, int, cudaStream_t);
OLDER(cudaGraphAddDependencies, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*, size_t);
OLDER(cudaGraphGetEdges, cudaGraph_t, cudaGraphNode_t*, cudaGraphNode_t*, size_t*);
OLDER(cudaGraphNodeGetDependencies, cudaGraphNode_t, cudaGraphNode_t*, size_t*);
OLDER(cudaStreamGetCaptureInfo, cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*);
OLDER(cudaStreamGetCaptureInfo_v2, cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
      const cudaGraphNode_t**, size_t*);
OLDER(cudaThreadSynchronize, );
OLDER(cudaSetDoubleForHost, double*);
OLDER(cudaLaunchCooperativeKernelMultiDevice, void*, unsigned, unsigned);
#if SMT_CUDART_MAJOR == 11
OLDER(cudaGraphInstantiate, cudaGraphExec_t*, cudaGraph_t, cudaGraphNode_t*, char*, size_t);
OLDER(cudaGraphExecUpdate, cudaGraphExec_t, cudaGraph_t, cudaGraphNode_t*, cudaGraphExecUpdateResult*);
OLDER(cudaGetDriverEntryPoint, const char*, void**, unsigned long long);
OLDER(cudaBindTexture, void*);
#endif

// A struct of the program's, and what lies behind it, which the runtime must leave alone.
template <typename T>
struct Guarded {
    T value;
    unsigned char behind[256];
    Guarded() { std::memset(static_cast<void*>(this), 0xa5, sizeof *this); }
    bool intact() const {
        return std::all_of(behind, behind + sizeof behind, [](unsigned char byte) { return byte == 0xa5; });
    }
};

void add(int*, int, int) { std::abort(); }
Image image("FAKE\nkernel fill params 8,4,4\n");

void devices() {
    int runtime = 0, count = 0, clock = 0;
    CHECK(cudaRuntimeGetVersion(&runtime));
    REQUIRE(runtime == (SMT_CUDART_MAJOR == 11 ? 11080 : 12090));
    CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0));
    Guarded<DeviceProp11> first;
    CHECK(older_cudaGetDeviceProperties(&first.value, 0));
    int found = 0;
    std::memcpy(&found, first.value.bytes + offsetof(DeviceProp12, multiProcessorCount), sizeof found);
    REQUIRE(first.intact() && found == count && std::strcmp(first.value.bytes, "Fake GPU") == 0);
#if SMT_CUDART_MAJOR == 12
    Guarded<DeviceProp12> second;
    CHECK(older_cudaGetDeviceProperties_v2(&second.value, 0));
    REQUIRE(second.intact() && second.value.multiProcessorCount == count && second.value.clockRate == clock);
    REQUIRE(second.value.major == 9 && second.value.maxThreadsDim[2] == 64 && second.value.reserved[62] == 0);
#endif
    FAILS(older_cudaLaunchCooperativeKernelMultiDevice(nullptr, 0, 0), cudaErrorNotSupported);
    CHECK(older_cudaSetDoubleForHost(nullptr));
}

void memory() {
    int* managed = nullptr;
    CHECK(cudaMallocManaged(&managed, 4096, cudaMemAttachGlobal));
    CHECK(older_cudaMemAdvise(managed, 4096, cudaMemAdviseSetReadMostly, 0));
    CHECK(older_cudaMemPrefetchAsync(managed, 4096, cudaCpuDeviceId, nullptr));
    Guarded<PointerAttributes12> attributes;
    CHECK(older_cudaPointerGetAttributes(&attributes.value, managed));
    REQUIRE(attributes.intact() && attributes.value.today().type == cudaMemoryTypeManaged);
    REQUIRE(attributes.value.today().hostPointer == managed);
    CHECK(cudaFree(managed));
}

void kernels() {
    image.kernel(add, "fill").end();
    int *device = nullptr, result[64], seven = 7, elements = 64;
    CHECK(cudaMalloc(&device, sizeof result));
    void* arguments[] = {&device, &seven, &elements};
    CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(add), dim3(1), dim3(64), arguments, 0, nullptr));
    CHECK(cudaMemcpy(result, device, sizeof result, cudaMemcpyDeviceToHost));
    REQUIRE(result[0] == 7 && result[63] == 7);
    CHECK(cudaFree(device));
#if SMT_CUDART_MAJOR == 11
    Guarded<FuncAttributes11> attributes;
    CHECK(older_cudaFuncGetAttributes(&attributes.value, reinterpret_cast<const void*>(add)));
    REQUIRE(attributes.intact() && attributes.value.today().maxThreadsPerBlock > 0);
#endif
}

void graphs() {
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t from = nullptr, to = nullptr, found = nullptr, other = nullptr;
    size_t edges = 1;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddEmptyNode(&from, graph, nullptr, 0));
    CHECK(cudaGraphAddEmptyNode(&to, graph, nullptr, 0));
    CHECK(older_cudaGraphAddDependencies(graph, &from, &to, 1));
    CHECK(older_cudaGraphGetEdges(graph, &found, &other, &edges));
    REQUIRE(edges == 1 && found == from && other == to);
    CHECK(older_cudaGraphNodeGetDependencies(to, &found, &edges));
    REQUIRE(edges == 1 && found == from);
    cudaGraphExec_t ready = nullptr;
#if SMT_CUDART_MAJOR == 11
    char log[64];
    cudaGraphExecUpdateResult result = cudaGraphExecUpdateError;
    CHECK(older_cudaGraphInstantiate(&ready, graph, &found, log, sizeof log));
    CHECK(older_cudaGraphExecUpdate(ready, graph, &found, &result));
    REQUIRE(result == cudaGraphExecUpdateSuccess);
#else
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
#endif
    CHECK(cudaGraphLaunch(ready, nullptr));
    CHECK(older_cudaThreadSynchronize());
    CHECK(cudaGraphExecDestroy(ready));
    CHECK(cudaGraphDestroy(graph));
}

void captures() {
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr, captured = nullptr;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0, again = 0;
    const cudaGraphNode_t* before = nullptr;
    size_t count = 9;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK(older_cudaStreamGetCaptureInfo(stream, &status, &id));
    REQUIRE(status == cudaStreamCaptureStatusActive && id != 0);
    CHECK(older_cudaStreamGetCaptureInfo_v2(stream, &status, &again, &graph, &before, &count));
    REQUIRE(again == id && graph && count == 0);
    CHECK(cudaStreamEndCapture(stream, &captured));
    CHECK(cudaGraphDestroy(captured));
    CHECK(cudaStreamDestroy(stream));
}

int main() {
    devices();
    memory();
    kernels();
    graphs();
    captures();
#if SMT_CUDART_MAJOR == 11
    void* entry = nullptr;
    CHECK(older_cudaGetDriverEntryPoint("cuMemAlloc", &entry, cudaEnableDefault));
    REQUIRE(entry);
    FAILS(older_cudaBindTexture(nullptr), cudaErrorNotSupported);
#endif
    std::puts("as CUDA " SMT_CUDART_NAME " has it");
}
