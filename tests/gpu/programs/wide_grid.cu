// A grid of more than 2^30 blocks: each counts itself, and the last rows tell that they were there.
#include "program.h"

constexpr unsigned kWidth = 1u << 27, kRows = 10;

__global__ void count(unsigned long long* counts) { atomicAdd(&counts[blockIdx.y], 1ull); }

int main() {
    unsigned long long *counts = nullptr, found[kRows];
    CHECK(cudaMalloc(&counts, sizeof found));
    CHECK(cudaMemset(counts, 0, sizeof found));
    count<<<dim3(kWidth, kRows), 1>>>(counts);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found, counts, sizeof found, cudaMemcpyDeviceToHost));
    Result result;
    for (unsigned long long each : found) result.expect(each == kWidth, "the number of blocks in a row");
    result.fold(found);
    CHECK(cudaFree(counts));
    return result.finish();
}
