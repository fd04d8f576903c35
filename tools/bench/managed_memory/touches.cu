// Managed memory that a kernel touches several times, for managed_memory.py.
//
//   bench_managed_memory MIB   for each case of kCases: allocates so much managed memory, writes all of it on
//     the host, has kernels read and write each word so many times, and looks at each word on the host.
//     Prints a line of JSON a case: what each step took, and whether all words were right.
//
// `once` has all passes in one launch, where each thread comes back to its own words; the others have a
// launch a pass. `prefetched` says where the memory is to be before the first launch, which counts as device
// time. `copied` is what a program without managed memory does: pageable memory, copied to the device and
// back.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kWarmWords = 1 << 16;
constexpr int kBlocks = 1056, kThreads = 256;  // a whole number of times an H100's 132 multiprocessors

struct Case {
    const char* name;
    int passes;
    bool once, prefetched, copied;
};
constexpr Case kCases[] = {
    {"once-2", 2, true, false, false},       {"launches-1", 1, false, false, false},
    {"launches-2", 2, false, false, false},  {"launches-10", 10, false, false, false},
    {"prefetched-2", 2, false, true, false}, {"prefetched-10", 10, false, true, false},
    {"copied-2", 2, false, false, true},     {"copied-10", 10, false, false, true},
};

void check(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorName(status));
    std::exit(1);
}
#define CHECK(call) check(call, #call)

__host__ __device__ uint32_t next_of(uint32_t word) { return word * 1664525u + 1013904223u; }

uint32_t first_of(size_t i) { return static_cast<uint32_t>(i) * 2654435761u; }

}  // namespace

// Through the cache, or a compiler would do all passes in registers.
extern "C" __global__ void touch(volatile uint32_t* data, size_t n, int passes) {
    const size_t stride = size_t{gridDim.x} * blockDim.x;
    for (int pass = 0; pass < passes; ++pass)
        for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
            data[i] = next_of(data[i]);
}

namespace {

double ms_since(Clock::time_point begun) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

void prefetch(void* memory, size_t bytes) {
#if CUDART_VERSION >= 13000
    cudaMemLocation device{};
    device.type = cudaMemLocationTypeDevice;
    CHECK(cudaMemPrefetchAsync(memory, bytes, device, 0, nullptr));
#else
    CHECK(cudaMemPrefetchAsync(memory, bytes, 0, nullptr));
#endif
}

void work(const Case& what, uint32_t* memory, size_t words) {
    if (what.once) {
        touch<<<kBlocks, kThreads>>>(memory, words, what.passes);
    } else {
        for (int i = 0; i < what.passes; ++i) touch<<<kBlocks, kThreads>>>(memory, words, 1);
    }
    CHECK(cudaGetLastError());
}

void on_device(const Case& what, uint32_t* memory, size_t words) {
    const size_t bytes = words * sizeof *memory;
    uint32_t* place = memory;
    if (what.copied) {
        CHECK(cudaMalloc(&place, bytes));
        CHECK(cudaMemcpy(place, memory, bytes, cudaMemcpyHostToDevice));
    }
    if (what.prefetched) prefetch(memory, bytes);
    work(what, place, words);
    if (what.copied) {
        CHECK(cudaMemcpy(memory, place, bytes, cudaMemcpyDeviceToHost));
        CHECK(cudaFree(place));
    }
    CHECK(cudaDeviceSynchronize());
}

size_t count_wrong(const uint32_t* memory, size_t words, int passes) {
    // `passes` times next_of() is factor * word + rest.
    uint32_t factor = 1, rest = 0;
    for (int i = 0; i < passes; ++i) {
        factor *= 1664525u;
        rest = next_of(rest);
    }
    size_t wrong = 0;
    for (size_t i = 0; i < words; ++i) wrong += memory[i] != first_of(i) * factor + rest;
    return wrong;
}

void run(const Case& what, size_t bytes) {
    const size_t words = bytes / sizeof(uint32_t);
    uint32_t* memory = nullptr;
    const auto begun = Clock::now();
    if (what.copied)
        memory = static_cast<uint32_t*>(std::malloc(bytes));
    else
        CHECK(cudaMallocManaged(&memory, bytes));
    if (!memory) check(cudaErrorMemoryAllocation, "malloc");
    const double allocated = ms_since(begun);
    const auto written = Clock::now();
    for (size_t i = 0; i < words; ++i) memory[i] = first_of(i);
    const double host_writes = ms_since(written);
    const auto launched = Clock::now();
    on_device(what, memory, words);
    const double device = ms_since(launched);
    const auto done = Clock::now();
    const size_t wrong = count_wrong(memory, words, what.passes);
    const double host_reads = ms_since(done);
    const auto over = Clock::now();
    if (what.copied)
        std::free(memory);
    else
        CHECK(cudaFree(memory));
    std::printf(
        "{\"case\": \"%s\", \"passes\": %d, \"allocate_ms\": %.3f, \"host_writes_ms\": %.3f, "
        "\"device_ms\": %.3f, \"host_reads_ms\": %.3f, \"free_ms\": %.3f, \"wrong_words\": %zu}\n",
        what.name, what.passes, allocated, host_writes, device, host_reads, ms_since(over), wrong);
    std::fflush(stdout);
}

// What is done once in a program's life is not of the first case.
void warm() {
    uint32_t* memory = nullptr;
    CHECK(cudaMallocManaged(&memory, kWarmWords * sizeof *memory));
    for (size_t i = 0; i < kWarmWords; ++i) memory[i] = 0;
    prefetch(memory, kWarmWords * sizeof *memory);
    for (int i = 0; i < 3; ++i) touch<<<1, kThreads>>>(memory, kWarmWords, 1);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(memory));
}

}  // namespace

int main(int count, char** arguments) {
    const size_t bytes = count == 2 ? std::strtoull(arguments[1], nullptr, 10) << 20 : 0;
    if (bytes == 0) return std::fprintf(stderr, "usage: bench_managed_memory MIB\n"), 2;
    warm();
    for (const Case& each : kCases) run(each, bytes);
}
