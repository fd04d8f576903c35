// Several host threads: each with its own stream and its per-thread default stream, all with one
// shared stream, and events handed from thread to thread.
#include <atomic>
#include <thread>
#include <vector>

#include "program.h"

constexpr int kThreads = 8, kRounds = 200, kCount = 2048;

__global__ void step(unsigned* data, unsigned add) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = data[i] * 1664525u + add;
}
__global__ void count(unsigned* counter, unsigned amount) { atomicAdd(counter, amount); }

unsigned expected(int thread, int start, int rounds) {
    unsigned value = start;
    for (int round = 0; round < rounds; ++round) value = value * 1664525u + (thread * 1000 + round);
    return value;
}

struct Shared {
    cudaStream_t stream;
    unsigned* counter;
    cudaEvent_t events[kThreads];
    std::atomic<int> recorded{0};
    std::atomic<int> wrong{0};
};

void work(int thread, Shared& shared, unsigned* result) {
    cudaStream_t own;
    unsigned *data, host[kCount];
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreate(&own));
    CHECK(cudaMalloc(&data, sizeof host));
    for (cudaStream_t stream : {own, cudaStreamPerThread}) {
        for (int i = 0; i < kCount; ++i) host[i] = i;
        CHECK(cudaMemcpyAsync(data, host, sizeof host, cudaMemcpyHostToDevice, stream));
        for (int round = 0; round < kRounds; ++round) {
            step<<<kCount / 256, 256, 0, stream>>>(data, thread * 1000 + round);
            if (round % 10 == 0) count<<<1, 32, 0, shared.stream>>>(shared.counter, thread + 1);
        }
        CHECK(cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        for (int i = 0; i < kCount; ++i) shared.wrong += host[i] != expected(thread, i, kRounds);
    }
    // A chain through all threads: each waits for its neighbour's event, which another thread records.
    step<<<kCount / 256, 256, 0, own>>>(data, 1);
    CHECK(cudaEventRecord(shared.events[thread], own));
    shared.recorded.fetch_add(1);
    while (shared.recorded.load() < kThreads) std::this_thread::yield();
    CHECK(cudaStreamWaitEvent(cudaStreamPerThread, shared.events[(thread + 1) % kThreads], 0));
    CHECK(cudaEventSynchronize(shared.events[(thread + 2) % kThreads]));
    count<<<1, 1, 0, cudaStreamPerThread>>>(shared.counter, 1);
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    CHECK(cudaMemcpy(result, data, sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(data));
    CHECK(cudaStreamDestroy(own));
    CHECK(cudaGetLastError());
}

int main() {
    Result result;
    Shared shared;
    CHECK(cudaStreamCreate(&shared.stream));
    CHECK(cudaMalloc(&shared.counter, sizeof(unsigned)));
    CHECK(cudaMemset(shared.counter, 0, sizeof(unsigned)));
    CHECK(cudaDeviceSynchronize());
    for (cudaEvent_t& event : shared.events) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    unsigned results[kThreads] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i, std::ref(shared), &results[i]);
    for (std::thread& thread : threads) thread.join();
    CHECK(cudaDeviceSynchronize());
    unsigned counted = 0;
    CHECK(cudaMemcpy(&counted, shared.counter, sizeof counted, cudaMemcpyDeviceToHost));
    std::printf("counted %u, wrong values %d\n", counted, shared.wrong.load());
    // 36 = 1 + ... + 8; 20 launches of 32 threads in each of two loops; 8 single ones.
    result.expect(counted == 36u * 20 * 2 * 32 + 8 && shared.wrong == 0, "threads");
    result.fold(results);

    // Threads that come and go.
    for (int i = 0; i < 50; ++i) {
        std::thread([&] {
            count<<<1, 1, 0, cudaStreamPerThread>>>(shared.counter, 1);
            CHECK(cudaStreamSynchronize(cudaStreamPerThread));
        }).join();
    }
    CHECK(cudaMemcpy(&counted, shared.counter, sizeof counted, cudaMemcpyDeviceToHost));
    std::printf("after fifty short threads: %u\n", counted);
    result.expect(counted == 36u * 20 * 2 * 32 + 58, "short threads");
    return result.finish();
}
