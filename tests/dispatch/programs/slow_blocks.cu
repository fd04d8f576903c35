// Blocks that take a millisecond and do next to nothing: slow_blocks copies|in_place|requests COUNT. So many
// launches, whose result is checked; `requests` are short launches that are waited for.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

constexpr unsigned kThreads = 32, kBlocks = 16, kCount = kThreads * kBlocks, kPause = 10'000, kRounds = 100;

void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::printf("%s\n", cudaGetErrorString(status));
    std::exit(3);
}

__global__ void copies(const unsigned* from, unsigned* to, unsigned rounds) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = 0;
#pragma unroll 1
    for (unsigned k = 0; k < rounds; ++k) {
        __nanosleep(kPause);
        value += from[(i + k) % kCount];
    }
    to[i] = value;
}

__global__ void in_place(unsigned* data, unsigned rounds) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (unsigned k = 0; k < rounds; ++k) {
        __nanosleep(kPause);
        data[i] += k;
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    const std::string_view what = arguments[1];
    const bool copying = what != "in_place";
    const unsigned rounds = what == "requests" ? 1 : kRounds;
    unsigned *from = nullptr, *to = nullptr;
    check(cudaMalloc(&from, kCount * sizeof *from));
    check(cudaMalloc(&to, kCount * sizeof *to));
    const std::vector<unsigned> ones(kCount, 1);
    check(cudaMemcpy(from, ones.data(), kCount * sizeof *from, cudaMemcpyDefault));
    for (int launch = 0; launch < std::atoi(arguments[2]); ++launch) {
        check(cudaMemset(to, 0, kCount * sizeof *to));
        if (copying)
            copies<<<kBlocks, kThreads>>>(from, to, rounds);
        else
            in_place<<<kBlocks, kThreads>>>(to, rounds);
        std::vector<unsigned> found(kCount);
        check(cudaMemcpy(found.data(), to, kCount * sizeof *to, cudaMemcpyDefault));
        for (const unsigned each : found) {
            if (each == (copying ? rounds : rounds * (rounds - 1) / 2)) continue;
            std::printf("launch %d: %u\n", launch, each);
            return 1;
        }
    }
    std::printf("right\n");
    return 0;
}
