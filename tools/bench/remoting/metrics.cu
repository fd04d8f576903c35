// The child of bench_remoting: an ordinary CUDA program that measures itself. It does not know
// whether it runs natively or preloaded.
#include <cuda_runtime.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
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

// Counts of calls are divided by it, for the simulated device.
int scale = 1;

int scaled(int count) { return std::max(2, count / scale); }

// A burst is short enough that no queue fills: what is measured is the launch, not waiting.
constexpr int kBurst = 256;

void launch() {
    std::vector<double> bursts, waits;
    const int bursts_unmeasured = scaled(50), waits_unmeasured = scaled(500);
    for (int burst = 0; burst < bursts_unmeasured + scaled(400); ++burst) {
        const double start = thread_cpu();
        for (int i = 0; i < kBurst; ++i) empty<<<1, 1>>>();
        const double end = thread_cpu();
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        if (burst >= bursts_unmeasured) bursts.push_back((end - start) / kBurst * 1e6);
    }
    report("launch_cpu_us", median(bursts));
    for (int i = 0; i < waits_unmeasured + scaled(2500); ++i) {
        const double start = now();
        empty<<<1, 1>>>();
        CHECK(cudaStreamSynchronize(nullptr));
        if (i >= waits_unmeasured) waits.push_back((now() - start) * 1e6);
    }
    CHECK(cudaGetLastError());
    report("launch_sync_us", median(waits));
}

void million() {
    const int count = scaled(1000000);
    for (int i = 0; i < count / 100; ++i) empty<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    const double start = now();
    for (int i = 0; i < count; ++i) empty<<<1, 1>>>();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    report("million_launches_per_s", count / (now() - start));
}

// Launches per second of `count` threads together, each with a stream of its own.
double launches_of(int count) {
    const int launches = scaled(200000);
    std::atomic<int> ready{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&] {
            cudaStream_t stream;
            CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            for (int k = 0; k < scaled(1000); ++k) empty<<<1, 1, 0, stream>>>();
            CHECK(cudaStreamSynchronize(stream));
            ready.fetch_add(1);
            while (!go) {
            }
            for (int k = 0; k < launches; ++k) empty<<<1, 1, 0, stream>>>();
            CHECK(cudaGetLastError());
            CHECK(cudaStreamSynchronize(stream));
            CHECK(cudaStreamDestroy(stream));
        });
    }
    while (ready < count) std::this_thread::yield();
    const double start = now();
    go = true;
    for (std::thread& thread : threads) thread.join();
    return count * static_cast<double>(launches) / (now() - start);
}

void threads() {
    CHECK(cudaFree(nullptr));
    const double one = launches_of(1), four = launches_of(4);
    report("one_thread_launches_per_s", one);
    report("four_threads_launches_per_s", four);
    report("four_threads_scaling", four / one);
}

struct CopySize {
    const char* name;
    size_t bytes;
    int rounds;
};
const std::vector<CopySize> kSizes{{"1MiB", 1 << 20, 60}, {"64MiB", 64 << 20, 10}, {"1GiB", 1 << 30, 4}};

// Without the largest one where counts are divided.
std::vector<CopySize> short_sizes() {
    std::vector<CopySize> sizes{{"4KiB", 4 << 10, 2000}, {"1MiB", 1 << 20, 200}};
    if (scale == 1) sizes.push_back({"256MiB", 256 << 20, 10});
    return sizes;
}

void copies(const char* kind, const std::vector<CopySize>& sizes, char* host, char* device) {
    for (const CopySize& size : sizes) {
        for (bool to_device : {true, false}) {
            std::vector<double> rates;
            for (int round = 0; round < scaled(size.rounds); ++round) {
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
    copies("pageable", kSizes, host, device);
}

void pinned() {
    char *device, *host;
    CHECK(cudaMalloc(&device, 1 << 30));
    CHECK(cudaMallocHost(&host, 1 << 30));
    std::memset(host, 1, 1 << 30);
    copies("pinned", kSizes, host, device);
}

void allocate_and_free(const char* name, size_t bytes) {
    std::vector<double> pairs;
    const int unmeasured = scaled(20);
    for (int round = 0; round < unmeasured + scaled(200); ++round) {
        void* memory;
        const double start = now();
        CHECK(cudaMalloc(&memory, bytes));
        CHECK(cudaFree(memory));
        if (round >= unmeasured) pairs.push_back((now() - start) * 1e6);
    }
    report(std::string("malloc_free_") + name + "_us", median(pairs));
}

void allocate() {
    CHECK(cudaFree(nullptr));
    allocate_and_free("256B", 256);
    allocate_and_free("1MiB", 1 << 20);
    allocate_and_free("64MiB", 64 << 20);
}

// Bytes that differ from place to place, and by `seed`.
void fill(char* bytes, size_t count, unsigned seed) {
    uint32_t word = seed;
    for (size_t i = 0; i + sizeof word <= count; i += sizeof word) {
        word = word * 1664525u + 1013904223u;
        std::memcpy(bytes + i, &word, sizeof word);
    }
}

void short_copies(const char* kind, char* host, char* device, const std::vector<char>& right) {
    std::memcpy(host, right.data(), right.size());
    copies(kind, short_sizes(), host, device);
    std::memset(host, 0, right.size());
    CHECK(cudaMemcpy(host, device, right.size(), cudaMemcpyDeviceToHost));
    report(std::string(kind) + "_right", std::memcmp(host, right.data(), right.size()) == 0);
}

// A little of everything in one process, for measurements that compare servers. The words of the last copies
// are looked at.
void short_group() {
    CHECK(cudaFree(nullptr));
    launch();
    report("one_thread_launches_per_s", launches_of(1));
    allocate_and_free("1MiB", 1 << 20);
    allocate_and_free("64MiB", 64 << 20);
    const size_t bytes = short_sizes().back().bytes;
    std::vector<char> right(bytes), pageable(bytes);
    fill(right.data(), bytes, 1);
    char *device, *pinned;
    CHECK(cudaMalloc(&device, bytes));
    CHECK(cudaMallocHost(&pinned, bytes));
    short_copies("pageable", pageable.data(), device, right);
    fill(right.data(), bytes, 2);
    short_copies("pinned", pinned, device, right);
}

// The device memory that is free beside this process's own context.
void free_memory() {
    size_t left = 0, total = 0;
    CHECK(cudaMemGetInfo(&left, &total));
    report("free_MiB", static_cast<double>(left) / (1 << 20));
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

int measure(const char* group, int divisor) {
    scale = std::max(1, divisor);
    const struct {
        const char* name;
        void (*run)();
    } groups[] = {{"launch", launch},     {"million", million}, {"threads", threads}, {"pageable", pageable},
                  {"pinned", pinned},     {"malloc", allocate}, {"startup", startup}, {"hold", hold},
                  {"short", short_group}, {"free", free_memory}};
    for (const auto& one : groups) {
        if (std::strcmp(one.name, group) != 0) continue;
        one.run();
        return 0;
    }
    std::fprintf(stderr, "bench_remoting: no group %s\n", group);
    return 2;
}

}  // namespace smt::bench
