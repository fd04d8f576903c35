// The child of bench_remoting: an ordinary CUDA program that measures itself. It does not know
// whether it runs natively or preloaded.
#include <cuda_runtime.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tools/bench/remoting/remoting.h"

#define CHECK(call) check((call), #call, __LINE__)

namespace smt::bench {
namespace {

__global__ void empty() {}
__global__ void add(const int* a, const int* b, int* sum) {
    sum[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

void check(cudaError_t status, const char* text, int line) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s: %s\n", line, text, cudaGetErrorName(status));
    std::_Exit(1);
}

double seconds(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
double now() { return seconds(CLOCK_MONOTONIC); }
double thread_cpu() { return seconds(CLOCK_THREAD_CPUTIME_ID); }

double median(std::vector<double> samples) {
    std::sort(samples.begin(), samples.end());
    return samples[samples.size() / 2];
}

void report(const std::string& name, double value) {
    std::printf("%s %.9g\n", name.c_str(), value);
    std::fflush(stdout);
}

// A burst is short enough that no queue fills: what is measured is the launch, not waiting.
constexpr int kBurst = 256;

void launch() {
    std::vector<double> bursts, waits;
    for (int burst = 0; burst < 450; ++burst) {
        const double start = thread_cpu();
        for (int i = 0; i < kBurst; ++i) empty<<<1, 1>>>();
        const double end = thread_cpu();
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        if (burst >= 50) bursts.push_back((end - start) / kBurst * 1e6);
    }
    report("launch_cpu_us", median(bursts));
    for (int i = 0; i < 3000; ++i) {
        const double start = now();
        empty<<<1, 1>>>();
        CHECK(cudaStreamSynchronize(nullptr));
        if (i >= 500) waits.push_back((now() - start) * 1e6);
    }
    CHECK(cudaGetLastError());
    report("launch_sync_us", median(waits));
}

void million() {
    for (int i = 0; i < 10000; ++i) empty<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    const double start = now();
    for (int i = 0; i < 1000000; ++i) empty<<<1, 1>>>();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    report("million_launches_per_s", 1e6 / (now() - start));
}

// Launches per second of `count` threads together, each with a stream of its own.
double launches_of(int count) {
    constexpr int kLaunches = 200000;
    std::atomic<int> ready{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&] {
            cudaStream_t stream;
            CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            for (int k = 0; k < 1000; ++k) empty<<<1, 1, 0, stream>>>();
            CHECK(cudaStreamSynchronize(stream));
            ready.fetch_add(1);
            while (!go) {
            }
            for (int k = 0; k < kLaunches; ++k) empty<<<1, 1, 0, stream>>>();
            CHECK(cudaGetLastError());
            CHECK(cudaStreamSynchronize(stream));
            CHECK(cudaStreamDestroy(stream));
        });
    }
    while (ready < count) std::this_thread::yield();
    const double start = now();
    go = true;
    for (std::thread& thread : threads) thread.join();
    return count * static_cast<double>(kLaunches) / (now() - start);
}

void threads() {
    CHECK(cudaFree(nullptr));
    const double one = launches_of(1), four = launches_of(4);
    report("one_thread_launches_per_s", one);
    report("four_threads_launches_per_s", four);
    report("four_threads_scaling", four / one);
}

void copies(const char* kind, char* host, char* device) {
    const struct {
        const char* name;
        size_t bytes;
        int rounds;
    } sizes[] = {{"1MiB", 1 << 20, 60}, {"64MiB", 64 << 20, 10}, {"1GiB", 1 << 30, 4}};
    for (const auto& size : sizes) {
        for (bool to_device : {true, false}) {
            std::vector<double> rates;
            for (int round = 0; round < size.rounds; ++round) {
                const double start = now();
                if (to_device)
                    CHECK(cudaMemcpy(device, host, size.bytes, cudaMemcpyHostToDevice));
                else
                    CHECK(cudaMemcpy(host, device, size.bytes, cudaMemcpyDeviceToHost));
                const double took = now() - start;
                if (round > 0) rates.push_back(static_cast<double>(size.bytes) / took / 1e9);
            }
            report(std::string(kind) + (to_device ? "_to_" : "_from_") + size.name + "_GBps", median(rates));
        }
    }
}

void pageable() {
    char* device;
    CHECK(cudaMalloc(&device, 1 << 30));
    char* host = static_cast<char*>(std::aligned_alloc(4096, 1 << 30));
    std::memset(host, 1, 1 << 30);
    copies("pageable", host, device);
}

void pinned() {
    char *device, *host;
    CHECK(cudaMalloc(&device, 1 << 30));
    CHECK(cudaMallocHost(&host, 1 << 30));
    std::memset(host, 1, 1 << 30);
    copies("pinned", host, device);
}

void allocate() {
    const struct {
        const char* name;
        size_t bytes;
    } sizes[] = {{"256B", 256}, {"1MiB", 1 << 20}, {"64MiB", 64 << 20}};
    CHECK(cudaFree(nullptr));
    for (const auto& size : sizes) {
        std::vector<double> pairs;
        for (int round = 0; round < 220; ++round) {
            void* memory;
            const double start = now();
            CHECK(cudaMalloc(&memory, size.bytes));
            CHECK(cudaFree(memory));
            if (round >= 20) pairs.push_back((now() - start) * 1e6);
        }
        report(std::string("malloc_free_") + size.name + "_us", median(pairs));
    }
}

// What the driver times from outside: a program that adds 1 KB of numbers and ends.
void startup() {
    int a[256], b[256], sum[256], *device;
    for (int i = 0; i < 256; ++i) a[i] = i, b[i] = 7 * i;
    CHECK(cudaMalloc(&device, 3 * sizeof a));
    CHECK(cudaMemcpy(device, a, sizeof a, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device + 256, b, sizeof b, cudaMemcpyHostToDevice));
    add<<<1, 256>>>(device, device + 256, device + 512);
    CHECK(cudaMemcpy(sum, device + 512, sizeof sum, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device));
    for (int i = 0; i < 256; ++i)
        if (sum[i] != 8 * i) std::_Exit(1);
}

// Holds a context, and nothing more, until its standard input ends.
void hold() {
    empty<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    std::printf("READY\n");
    std::fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
}

}  // namespace

int measure(const char* group) {
    const struct {
        const char* name;
        void (*run)();
    } groups[] = {{"launch", launch}, {"million", million}, {"threads", threads}, {"pageable", pageable},
                  {"pinned", pinned}, {"malloc", allocate}, {"startup", startup}, {"hold", hold}};
    for (const auto& one : groups) {
        if (std::strcmp(one.name, group) != 0) continue;
        one.run();
        return 0;
    }
    std::fprintf(stderr, "bench_remoting: no group %s\n", group);
    return 2;
}

}  // namespace smt::bench
