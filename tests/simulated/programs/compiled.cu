// Kernels as nvcc compiles them: shared memory, barriers, atomics, printf, a global and dynamic shared
// memory.
#include <cooperative_groups.h>

#include <cstdio>

__constant__ float weights[4];
__device__ unsigned rounds;

extern "C" __global__ void reduce(const float* from, float* to, int count) {
    __shared__ float partial[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    partial[threadIdx.x] = i < count ? from[i] * weights[i % 4] : 0.0f;
    __syncthreads();
    for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(to, partial[0]);
    if (i == 0) atomicAdd(&rounds, 1u);
}

extern "C" __global__ void reverse(int* data) {
    extern __shared__ int held[];
    held[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void greet() { printf("hello from block %d of %d\n", blockIdx.x, gridDim.x); }

// Each block adds up what all blocks wrote before the grid's barrier.
extern "C" __global__ void together(unsigned* words, unsigned* sums) {
    if (threadIdx.x == 0) words[blockIdx.x] = blockIdx.x + 1;
    cooperative_groups::this_grid().sync();
    if (threadIdx.x != 0) return;
    unsigned sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += words[i];
    sums[blockIdx.x] = sum;
}
