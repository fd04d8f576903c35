// What the programs beside this file share. Each runs one construct of the language, by name, again and
// again, and prints a hash of the memory that its kernels left:
//
//   PROGRAM                      the names, one a line
//   PROGRAM NAME [ITERATIONS]    "NAME HASH"; exit code 1 if two iterations differ, 3 if a CUDA call fails
//
// Kernels add to their output, so that a block which runs twice, or never, shows. Blocks come in numbers that
// no device runs at once where it has eight multiprocessors with few places each, and their warps leave them
// at different times.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace constructs {

constexpr unsigned kWords = 1 << 14;  // of output, zeroed

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t status_ = (call);                                                                  \
        if (status_ != cudaSuccess) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_)); \
            std::exit(3);                                                                                    \
        }                                                                                                    \
    } while (0)

struct Construct {
    const char* name;
    void (*run)(unsigned* out);  // launches; does not wait
};

__host__ __device__ inline unsigned mixed(unsigned value) {
    value = (value ^ value >> 16) * 0x85ebca6bu;
    return value ^ value >> 13;
}

// Keeps a warp so much busier than the ones before it.
__device__ inline unsigned dawdle(unsigned value) {
    for (unsigned i = 0; i < threadIdx.x / 32 * 24; ++i) value = mixed(value + i);
    return value;
}

inline unsigned long long hash(const std::vector<unsigned>& words) {
    unsigned long long sum = 14695981039346656037ull;
    for (unsigned word : words) sum = (sum ^ word) * 1099511628211ull;
    return sum;
}

template <size_t kCount>
int run(int argc, char** argv, const Construct (&all)[kCount]) {
    if (argc < 2) {
        for (const Construct& each : all) std::puts(each.name);
        return 0;
    }
    const int iterations = argc > 2 ? std::atoi(argv[2]) : 1;
    for (const Construct& each : all) {
        if (std::strcmp(each.name, argv[1]) != 0) continue;
        unsigned* out = nullptr;
        CHECK(cudaMalloc(&out, kWords * sizeof *out));
        std::vector<unsigned> words(kWords);
        unsigned long long first = 0;
        for (int i = 0; i < iterations; ++i) {
            CHECK(cudaMemset(out, 0, kWords * sizeof *out));
            each.run(out);
            CHECK(cudaGetLastError());
            CHECK(cudaMemcpy(words.data(), out, kWords * sizeof *out, cudaMemcpyDeviceToHost));
            if (i == 0) first = hash(words);
            if (hash(words) == first) continue;
            std::printf("%s: iteration %d differs\n", each.name, i);
            return 1;
        }
        std::printf("%s %016llx\n", each.name, first);
        return 0;
    }
    std::fprintf(stderr, "%s: no construct is called %s\n", argv[0], argv[1]);
    return 2;
}

}  // namespace constructs
