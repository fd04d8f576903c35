// Mistakes that CUDA reports and survives: the codes must be the same with and without smt.
// Nothing here makes a kernel fault.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "program.h"

__global__ void empty(int*) {}
__device__ int symbol[4];

std::atomic<bool> open_gate{false};
void CUDART_CB wait_at_gate(void*) {
    for (int i = 0; i < 5000 && !open_gate; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Result result;

// Prints the call's answer, and what cudaPeekAtLastError and cudaGetLastError say after it.
void show(const char* what, cudaError_t status) {
    const cudaError_t peeked = cudaPeekAtLastError(), last = cudaGetLastError(), then = cudaGetLastError();
    std::printf("%-44s %s (%d), last %d %d, then %d\n", what, cudaGetErrorName(status), status, peeked, last,
                then);
    const int codes[] = {status, peeked, last, then};
    result.fold(codes);
}

template <typename Launch>
void launch(const char* what, Launch go) {
    go();
    show(what, cudaPeekAtLastError());
}

void memory(int* device) {
    void* pointer = nullptr;
    int host = 0;
    show("malloc 0 bytes", cudaMalloc(&pointer, 0));
    result.expect(pointer == nullptr, "zero bytes give a null pointer");
    show("malloc 2^50 bytes", cudaMalloc(&pointer, 1ull << 50));
    show("malloc to null", cudaMalloc(static_cast<void**>(nullptr), 16));
    show("free null", cudaFree(nullptr));
    show("free a wild pointer", cudaFree(reinterpret_cast<void*>(0x1234)));
    show("free a host pointer", cudaFree(&host));
    show("free the middle of an allocation", cudaFree(device + 1));
    show("freeHost of plain memory", cudaFreeHost(&host));
    show("copy to null", cudaMemcpy(nullptr, &host, 4, cudaMemcpyHostToDevice));
    show("copy from null", cudaMemcpy(device, nullptr, 4, cudaMemcpyHostToDevice));
    show("copy of nothing", cudaMemcpy(device, &host, 0, cudaMemcpyHostToDevice));
    show("copy in no direction", cudaMemcpy(device, &host, 4, static_cast<cudaMemcpyKind>(99)));
    std::vector<char> large(1 << 20);
    show("memset of null", cudaMemset(nullptr, 0, 4));
    show("2-D copy wider than its pitch", cudaMemcpy2D(device, 16, &host, 4, 32, 1, cudaMemcpyHostToDevice));
    show("copy past the end of a symbol", cudaMemcpyToSymbol(symbol, &host, 4, 16));
    show("symbol that is none", cudaMemcpyToSymbol(static_cast<const void*>(&host), &host, 4));
    show("register twice", cudaHostRegister(large.data(), 8192, 0));
    show("register twice, second", cudaHostRegister(large.data(), 8192, 0));
    show("unregister", cudaHostUnregister(large.data()));
    show("unregister twice", cudaHostUnregister(large.data()));
    show("device pointer of plain memory", cudaHostGetDevicePointer(&pointer, large.data(), 0));
    cudaPointerAttributes attributes;
    show("attributes of plain memory", cudaPointerGetAttributes(&attributes, &host));
    std::printf("type %d\n", attributes.type);
    cudaArray_t array;
    const auto format = cudaCreateChannelDesc<float>();
    show("array too wide", cudaMallocArray(&array, &format, 1 << 24, 1 << 10));
}

void launches(int* device) {
    launch("2048 threads in a block", [&] { empty<<<1, 2048>>>(device); });
    launch("no blocks", [&] { empty<<<0, 1>>>(device); });
    launch("no threads", [&] { empty<<<1, 0>>>(device); });
    launch("grid too high", [&] { empty<<<dim3(1, 70000), 1>>>(device); });
    launch("block too deep", [&] { empty<<<1, dim3(1, 1, 65)>>>(device); });
    launch("1 MiB of shared memory", [&] { empty<<<1, 1, 1 << 20>>>(device); });
    launch("right after wrong", [&] { empty<<<1, 1>>>(device); });
    int number = 0;
    void* arguments[] = {&device};
    show("launch of no kernel", cudaLaunchKernel(&number, dim3(1), dim3(1), arguments, 0, 0));
    cudaFuncAttributes attributes;
    show("attributes of no kernel", cudaFuncGetAttributes(&attributes, &number));
    show("too much shared memory asked for",
         cudaFuncSetAttribute(empty, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
    show("synchronize", cudaDeviceSynchronize());
}

void devices() {
    int count = 0, value = 0;
    cudaDeviceProp properties;
    show("device count", cudaGetDeviceCount(&count));
    show("set device 99", cudaSetDevice(99));
    show("set device -1", cudaSetDevice(-1));
    show("properties of device 99", cudaGetDeviceProperties(&properties, 99));
    show("attribute that is none", cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0));
    show("limit that is none", cudaDeviceSetLimit(static_cast<cudaLimit>(99), 1));
}

void streams(int* device) {
    cudaStream_t stream, other;
    cudaEvent_t event, untimed, fresh;
    float milliseconds;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreate(&other));
    CHECK(cudaEventCreate(&event));
    CHECK(cudaEventCreate(&fresh));
    CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    show("event flags that are none", cudaEventCreateWithFlags(&fresh, 0xff00));
    show("query of a fresh event", cudaEventQuery(event));
    show("elapsed time of fresh events", cudaEventElapsedTime(&milliseconds, event, event));
    show("record without timing", cudaEventRecord(untimed, stream));
    show("elapsed time without timing", cudaEventElapsedTime(&milliseconds, untimed, untimed));
    show("wait for no event", cudaStreamWaitEvent(stream, nullptr, 0));
    show("host function", cudaLaunchHostFunc(stream, wait_at_gate, nullptr));
    show("record behind it", cudaEventRecord(event, stream));
    show("query of a busy stream", cudaStreamQuery(stream));
    show("query of an event not reached", cudaEventQuery(event));
    show("elapsed time not reached", cudaEventElapsedTime(&milliseconds, event, event));
    open_gate = true;
    show("synchronize", cudaStreamSynchronize(stream));
    show("query of an idle stream", cudaStreamQuery(stream));
    cudaGraph_t graph;
    show("capture of the legacy stream",
         cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeRelaxed));
    show("end without begin", cudaStreamEndCapture(stream, &graph));
    show("begin capture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    show("begin capture twice", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch("captured launch", [&] { empty<<<1, 1, 0, stream>>>(device); });
    show("synchronize a capturing stream", cudaStreamSynchronize(stream));
    show("end of a broken capture", cudaStreamEndCapture(stream, &graph));
    launch("launch afterwards", [&] { empty<<<1, 1, 0, stream>>>(device); });
    show("destroy", cudaStreamDestroy(stream));
    show("synchronize the device", cudaDeviceSynchronize());
}

int main() {
    int* device;
    CHECK(cudaMalloc(&device, 1 << 20));
    memory(device);
    launches(device);
    devices();
    streams(device);
    std::vector<char> large(256 << 20);
    show("copy past the end", cudaMemcpy(large.data(), device, large.size(), cudaMemcpyDeviceToHost));
    show("free", cudaFree(device));
    return result.finish();
}
