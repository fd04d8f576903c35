// Kernels whose cubins have what the door must leave right: offsets of instructions of all kinds, debug and
// line sections, relocations, parameters of all sizes.
#include <cooperative_groups.h>

#include <cstdint>
#include <cstdio>

__device__ float variable[64];

extern "C" {

__global__ void store(float* out, float value) { out[threadIdx.x] = value; }

__global__ void no_parameters() { variable[threadIdx.x & 63] += 1; }

struct Odd {
    char bytes[13];
};
__global__ void odd_parameters(float* out, Odd odd) { out[threadIdx.x] = odd.bytes[threadIdx.x % 13]; }

struct Large {
    float values[1000];
};
__global__ void large_parameters(float* out, const __grid_constant__ Large large) {
    out[threadIdx.x] = large.values[threadIdx.x];
}

// Warp-wide instructions and several exits.
__global__ void voting(unsigned* out, unsigned* count, int n) {
    if (threadIdx.x >= n) return;
    const unsigned all = __ballot_sync(~0u, out[threadIdx.x] & 1);
    const unsigned theirs = __shfl_xor_sync(~0u, all + threadIdx.x, 3);
    if (theirs == 7) return;
    atomicAdd(count, 1u);
    out[threadIdx.x] = theirs;
}

__global__ void printing(int n) {
    if (threadIdx.x == 0) printf("%d\n", n);
}

__global__ void grid_wide(unsigned* out) {
    out[blockIdx.x] = 1;
    cooperative_groups::this_grid().sync();
    auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
    out[blockIdx.x] += tile.shfl(out[0], 3);
}

// A table of places to branch to.
__global__ void branching(float* out, int which) {
    float v = out[threadIdx.x];
    switch (which) {
        case 0:
            v = sinf(v);
            break;
        case 1:
            v = expf(v) + 2;
            break;
        case 2:
            v = __saturatef(v) * out[3];
            break;
        case 3:
            v = logf(v);
            break;
        case 4:
            v = sqrtf(v) - out[5];
            break;
        case 5:
            v = v * v * v;
            break;
        case 6:
            v = tanhf(v);
            break;
        case 7:
            v = out[9] / v;
            break;
        case 8:
            __syncthreads();
            v = out[threadIdx.x ^ 5];
            break;
        case 9:
            v = cosf(v);
            break;
    }
    out[threadIdx.x] = v;
}

__global__ void with_mbarrier(float* out) {
    __shared__ alignas(8) uint64_t barrier;
    const uint32_t place = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(place), "r"(blockDim.x));
    __syncthreads();
    uint64_t state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(place) : "memory");
    int done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(place), "l"(state)
                     : "memory");
    out[threadIdx.x] = 1;
}

__noinline__ __device__ float deeper(float v, int depth) { return depth ? deeper(v + 1, depth - 1) * 2 : v; }
__global__ void __launch_bounds__(256, 2) calling(float* out, int depth) {
    out[threadIdx.x] = deeper(out[threadIdx.x], depth);
}

struct Huge {
    float values[7000];
};
__global__ void huge_parameters(const __grid_constant__ Huge huge, float* out) {
    out[threadIdx.x] = huge.values[threadIdx.x % 7000];
}

// As a scan with decoupled look-back does.
__global__ void looks_back(float* out, const volatile int* flags) {
    while (blockIdx.x && flags[blockIdx.x - 1] == 0) {
    }
    out[threadIdx.x] = 1;
}

}  // extern "C"
