// Atomics on shared and global memory, 32 and 64 bits, and a compare-and-swap loop.
#include <vector>

#include "program.h"

constexpr int kBins = 256;

__global__ void histogram(const unsigned char* data, int count, unsigned* bins) {
    __shared__ unsigned local[kBins];
    for (int i = threadIdx.x; i < kBins; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        atomicAdd(&local[data[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < kBins; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

// facts: sum (atomicAdd), largest (atomicMax), bits (atomicOr), product modulo 65521 (atomicCAS).
__global__ void fold(const unsigned char* data, int count, unsigned long long* facts) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const unsigned long long value = data[i] * 1ull + i % 1000;
        atomicAdd(&facts[0], value);
        atomicMax(&facts[1], value);
        atomicOr(&facts[2], 1ull << (value % 61));
        if (i % 4096 != 0) continue;
        unsigned long long seen = facts[3], expected;
        do {
            expected = seen;
            seen = atomicCAS(&facts[3], expected, expected * (value + 1) % 65521);
        } while (seen != expected);
    }
}

int main() {
    Result result;
    Random random;
    const int count = 3 << 20;
    std::vector<unsigned char> data(count);
    std::vector<unsigned> reference(kBins), bins(kBins);
    unsigned long long expected[4] = {0, 0, 0, 1}, facts[4] = {0, 0, 0, 1};
    for (int i = 0; i < count; ++i) {
        data[i] = static_cast<unsigned char>(random.next() * random.next() >> 20);
        ++reference[data[i]];
        const unsigned long long value = data[i] * 1ull + i % 1000;
        expected[0] += value;
        expected[1] = value > expected[1] ? value : expected[1];
        expected[2] |= 1ull << (value % 61);
        if (i % 4096 == 0) expected[3] = expected[3] * (value + 1) % 65521;
    }
    unsigned char* device_data;
    unsigned* device_bins;
    unsigned long long* device_facts;
    CHECK(cudaMalloc(&device_data, count));
    CHECK(cudaMalloc(&device_bins, kBins * sizeof(unsigned)));
    CHECK(cudaMalloc(&device_facts, sizeof facts));
    CHECK(cudaMemcpy(device_data, data.data(), count, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_bins, 0, kBins * sizeof(unsigned)));
    CHECK(cudaMemcpy(device_facts, facts, sizeof facts, cudaMemcpyHostToDevice));
    histogram<<<264, 256>>>(device_data, count, device_bins);
    fold<<<264, 256>>>(device_data, count, device_facts);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(bins.data(), device_bins, kBins * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(facts, device_facts, sizeof facts, cudaMemcpyDeviceToHost));
    result.expect(bins == reference, "histogram");
    for (int i = 0; i < 4; ++i) {
        std::printf("fact %d: %llu\n", i, facts[i]);
        result.expect(facts[i] == expected[i], "fact");
    }
    result.fold(bins.data(), kBins * sizeof(unsigned));
    result.fold(facts);
    return result.finish();
}
