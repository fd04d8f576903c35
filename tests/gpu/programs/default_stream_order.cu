// The legacy default stream orders with the blocking streams of its process, both ways, and with
// no other stream. Kernels that dawdle before they write make a missing order visible.
#include <atomic>
#include <chrono>
#include <thread>

#include "program.h"

__global__ void slow_write(int* place, int value) {
    const long long start = clock64();
    while (clock64() - start < 20'000'000) {
    }  // about 10 ms
    *place = value;
}
__global__ void read(const int* place, int* seen) { *seen = *place; }
__global__ void advance(int* place, int step) { *place = *place * 3 + step; }

struct Gate {
    std::atomic<bool> open{false};
    std::atomic<bool> gave_up{false};
};

void CUDART_CB wait_at_gate(void* state) {
    auto* gate = static_cast<Gate*>(state);
    for (int i = 0; i < 5000 && !gate->open; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    gate->gave_up = !gate->open;
}

int* place;
int* seen;

// What `reader` sees of a slow write in `writer`, issued just before.
int order(cudaStream_t writer, cudaStream_t reader, int value) {
    int answer = -1;
    CHECK(cudaMemset(place, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    slow_write<<<1, 1, 0, writer>>>(place, value);
    read<<<1, 1, 0, reader>>>(place, seen);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&answer, seen, sizeof answer, cudaMemcpyDeviceToHost));
    return answer;
}

int main() {
    Result result;
    cudaStream_t a, b, loose;
    CHECK(cudaStreamCreate(&a));
    CHECK(cudaStreamCreate(&b));
    CHECK(cudaStreamCreateWithFlags(&loose, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&place, sizeof(int)));
    CHECK(cudaMalloc(&seen, sizeof(int)));

    result.expect(order(a, cudaStreamLegacy, 11) == 11, "blocking before legacy");
    result.expect(order(cudaStreamLegacy, a, 12) == 12, "legacy before blocking");
    result.expect(order(cudaStreamPerThread, cudaStreamLegacy, 13) == 13, "per-thread before legacy");
    result.expect(order(cudaStreamLegacy, cudaStreamPerThread, 14) == 14, "legacy before per-thread");
    result.expect(order(loose, loose, 15) == 15, "one stream");
#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
    result.expect(order(a, nullptr, 16) == 16 && order(nullptr, b, 17) == 17, "null is legacy");
#else
    result.expect(order(nullptr, cudaStreamPerThread, 16) == 16, "null is per-thread");
#endif

    // Blocking stream to blocking stream through nothing but an empty piece of legacy work.
    CHECK(cudaMemset(place, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    slow_write<<<1, 1, 0, a>>>(place, 21);
    CHECK(cudaMemsetAsync(seen, 0, sizeof(int), cudaStreamLegacy));
    read<<<1, 1, 0, b>>>(place, seen);
    int answer = -1;
    CHECK(cudaMemcpyAsync(&answer, seen, sizeof answer, cudaMemcpyDeviceToHost, cudaStreamLegacy));
    CHECK(cudaStreamSynchronize(cudaStreamLegacy));
    result.expect(answer == 21, "through legacy");

    // Order matters at every step of this chain.
    CHECK(cudaMemset(place, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    const cudaStream_t turn[] = {
        a, cudaStreamLegacy, b, cudaStreamLegacy, cudaStreamPerThread, cudaStreamLegacy};
    unsigned expected = 0;
    for (int i = 0; i < 600; ++i) {
        advance<<<1, 1, 0, turn[i % 6]>>>(place, i);
        expected = expected * 3 + i;
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&answer, place, sizeof answer, cudaMemcpyDeviceToHost));
    std::printf("chain: %u\n", static_cast<unsigned>(answer));
    result.expect(static_cast<unsigned>(answer) == expected, "chain");
    result.fold(answer);

    // Another thread's legacy work orders with ours.
    CHECK(cudaMemset(place, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    std::thread([&] { slow_write<<<1, 1, 0, cudaStreamLegacy>>>(place, 31); }).join();
    read<<<1, 1, 0, a>>>(place, seen);
    CHECK(cudaStreamSynchronize(a));
    CHECK(cudaMemcpy(&answer, seen, sizeof answer, cudaMemcpyDeviceToHost));
    result.expect(answer == 31, "another thread's legacy work");

    // A non-blocking stream runs while the legacy stream is held back.
    Gate gate;
    CHECK(cudaMemset(place, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaLaunchHostFunc(cudaStreamLegacy, wait_at_gate, &gate));
    advance<<<1, 1, 0, loose>>>(place, 41);
    CHECK(cudaStreamSynchronize(loose));
    std::printf("legacy stream meanwhile: %s\n", cudaGetErrorName(cudaStreamQuery(cudaStreamLegacy)));
    gate.open = true;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&answer, place, sizeof answer, cudaMemcpyDeviceToHost));
    result.expect(answer == 41 && !gate.gave_up, "non-blocking beside legacy");
    return result.finish();
}
