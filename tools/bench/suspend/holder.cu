// What is suspended: a program with memory, for suspend.py.
//
//   bench_suspend MIB ALLOCATIONS   holds so much in so many allocations, with words of its own in each;
//     measures what a copy between pinned host memory and the device takes, says it in a line of JSON, and
//     READY. After a line it looks at every word, and prints a line of JSON: whether all are right.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCopies = 5;
constexpr size_t kMostCopied = 256u << 20;

void check(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorName(status));
    std::exit(1);
}
#define CHECK(call) check(call, #call)

__device__ uint32_t word_of(uint32_t allocation, size_t i) {
    return static_cast<uint32_t>(i) * 2654435761u + allocation * 40503u;
}

}  // namespace

extern "C" __global__ void fill(uint32_t* data, uint32_t allocation, size_t n) {
    const size_t stride = size_t{gridDim.x} * blockDim.x;
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        data[i] = word_of(allocation, i);
}
extern "C" __global__ void count_wrong(const uint32_t* data, uint32_t allocation, size_t n,
                                       unsigned long long* wrong) {
    const size_t stride = size_t{gridDim.x} * blockDim.x;
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        if (data[i] != word_of(allocation, i)) atomicAdd(wrong, 1ull);
}

namespace {

// The median of some copies, in bytes a second.
double bandwidth(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    std::vector<double> seconds;
    for (int i = 0; i <= kCopies; ++i) {
        const auto begun = Clock::now();
        CHECK(cudaMemcpy(to, from, bytes, kind));
        if (i > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
    }
    std::sort(seconds.begin(), seconds.end());
    return static_cast<double>(bytes) / seconds[kCopies / 2];
}

// With memory of its own, whatever the size of the allocations.
void measure(size_t bytes) {
    void *pinned = nullptr, *memory = nullptr;
    CHECK(cudaMallocHost(&pinned, bytes));
    CHECK(cudaMalloc(&memory, bytes));
    const double out = bandwidth(pinned, memory, bytes, cudaMemcpyDeviceToHost),
                 in = bandwidth(memory, pinned, bytes, cudaMemcpyHostToDevice);
    CHECK(cudaFree(memory));
    CHECK(cudaFreeHost(pinned));
    std::printf("{\"out_bytes_per_s\": %.0f, \"in_bytes_per_s\": %.0f}\n", out, in);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return std::fprintf(stderr, "usage: bench_suspend MIB ALLOCATIONS\n"), 2;
    const size_t bytes = std::strtoull(arguments[1], nullptr, 10) << 20;
    const auto allocations = static_cast<uint32_t>(std::strtoul(arguments[2], nullptr, 10));
    const size_t each = bytes / std::max(allocations, 1u), words = each / sizeof(uint32_t);
    if (words == 0) return std::fprintf(stderr, "too little memory for so many allocations\n"), 2;
    measure(std::min(bytes, kMostCopied));
    std::vector<uint32_t*> memory(allocations);
    unsigned long long* wrong = nullptr;
    CHECK(cudaMalloc(&wrong, sizeof *wrong));
    CHECK(cudaMemset(wrong, 0, sizeof *wrong));
    for (uint32_t i = 0; i < allocations; ++i) {
        CHECK(cudaMalloc(&memory[i], each));
        fill<<<256, 256>>>(memory[i], i, words);
    }
    CHECK(cudaDeviceSynchronize());
    std::puts("READY");
    std::fflush(stdout);
    std::getchar();
    for (uint32_t i = 0; i < allocations; ++i) count_wrong<<<256, 256>>>(memory[i], i, words, wrong);
    unsigned long long found = 0;
    CHECK(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost));
    std::printf("{\"right\": %s, \"wrong_words\": %llu}\n", found ? "false" : "true", found);
}
