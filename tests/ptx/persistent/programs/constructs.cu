// What persistent PTX must get right, in one program: it prints a line for each kernel, and the lines must
// not depend on whether and when the kernels are stopped. Built for the device: constructs [rounds]
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kThreads = 96;

// ---- The block's index in functions: called by one another, recursively

__device__ __noinline__ unsigned block_number() {
    return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

__device__ __noinline__ unsigned descend(unsigned depth) {
    if (depth == 0) return block_number();
    return descend(depth - 1) * 3u + gridDim.x + depth;
}

__global__ void functions(unsigned* out) {
    out[block_number() * blockDim.x + threadIdx.x] = descend(threadIdx.x % 5 + 1);
}

// ---- Some threads leave ahead of a barrier; how many, the data says

__global__ void early(unsigned* out) {
    __shared__ unsigned sums[kThreads];
    const unsigned block = block_number(), count = 33 + block * 7 % 61;
    out[block * blockDim.x + threadIdx.x] = 7;
    if (threadIdx.x >= count) return;
    sums[threadIdx.x] = threadIdx.x * block + 1;
    __syncthreads();
    unsigned sum = 0;
    for (unsigned i = 0; i < count; ++i) sum += sums[i];
    out[block * blockDim.x + threadIdx.x] = sum;
}

// ---- Shared memory of all kinds; a block must not see another's

__global__ void tiles(unsigned* out, int steps) {
    extern __shared__ unsigned dynamic[];
    __shared__ unsigned own[kThreads];
    const unsigned block = block_number();
    own[threadIdx.x] = block;
    dynamic[threadIdx.x] = 0;
    for (int step = 0; step < steps; ++step) {
        __syncthreads();
        const unsigned next = own[(threadIdx.x + 1) % blockDim.x] * 5u + static_cast<unsigned>(step);
        __syncthreads();
        own[threadIdx.x] = next;
        dynamic[blockDim.x - 1 - threadIdx.x] += next;
    }
    __syncthreads();
    out[block * blockDim.x + threadIdx.x] = own[threadIdx.x] ^ dynamic[threadIdx.x];
}

// ---- Local memory, a table of branches, several ways out

__global__ void ways(unsigned* out) {
    unsigned local[8];
    const unsigned at = block_number() * blockDim.x + threadIdx.x;
    for (unsigned i = 0; i < 8; ++i) local[i] = at * (i + 1);
    const unsigned pick = local[(blockIdx.x + threadIdx.x) % 8];
    out[at] = 1;
    switch (pick % 7) {
        case 0:
            return;
        case 1:
            out[at] = pick * 2;
            break;
        case 2:
            out[at] = pick * 3 + 1;
            return;
        case 3:
            out[at] = pick ^ 0x55;
            break;
        case 4:
            out[at] = pick + blockIdx.y;
            break;
        case 5:
            out[at] = gridDim.z;
            return;
        default:
            out[at] = pick - 9;
    }
    out[at] += local[pick % 8];
}

// ---- Warps: whole ones work, others have left

__global__ void warps(unsigned* out) {
    const unsigned at = block_number() * blockDim.x + threadIdx.x;
    out[at] = 3;
    if (threadIdx.x / 32 == block_number() % 3) return;
    unsigned value = at;
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    out[at] = value + __popc(__ballot_sync(0xffffffffu, value & 1));
}

// ---- Variables of the module live once; 16 bits of an index

__device__ unsigned long long total;
__constant__ unsigned factors[4] = {3, 5, 7, 11};

__global__ void variables(unsigned* out) {
    unsigned short x;
    asm("mov.u16 %0, %%ctaid.x;" : "=h"(x));
    const unsigned at = block_number() * blockDim.x + threadIdx.x;
    out[at] = factors[x % 4] * at;
    atomicAdd(&total, static_cast<unsigned long long>(out[at]));
}

// ---- Named barriers of some warps

__global__ void named(unsigned* out) {
    __shared__ unsigned box[kThreads];
    const unsigned at = block_number() * blockDim.x + threadIdx.x;
    box[threadIdx.x] = at;
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    out[at] = threadIdx.x < 64 ? box[63 - threadIdx.x] : at;
}

int main(int count, char** arguments) {
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 1;
    const dim3 grid(13, 5, 3);
    const size_t threads = size_t{13} * 5 * 3 * kThreads;
    unsigned* out = nullptr;
    if (cudaMalloc(reinterpret_cast<void**>(&out), threads * sizeof *out) != cudaSuccess) return 1;
    std::vector<unsigned> host(threads);
    auto report = [&](const char* name) {
        const cudaError_t status =
            cudaMemcpy(host.data(), out, threads * sizeof *out, cudaMemcpyDeviceToHost);
        uint64_t hash = 1469598103934665603u;
        for (const unsigned value : host) hash = (hash ^ value) * 1099511628211u;
        std::printf("%s %d %016llx\n", name, static_cast<int>(status), static_cast<unsigned long long>(hash));
    };
    for (int round = 0; round < rounds; ++round) {
        functions<<<grid, kThreads>>>(out), report("functions");
        early<<<grid, kThreads>>>(out), report("early");
        tiles<<<grid, kThreads, kThreads * sizeof(unsigned)>>>(out, 9), report("tiles");
        ways<<<grid, kThreads>>>(out), report("ways");
        warps<<<grid, kThreads>>>(out), report("warps");
        variables<<<grid, kThreads>>>(out), report("variables");
        named<<<grid, kThreads>>>(out), report("named");
    }
    unsigned long long sum = 0;
    cudaMemcpyFromSymbol(&sum, total, sizeof sum);
    std::printf("total %llu\n", sum);
    return 0;
}
