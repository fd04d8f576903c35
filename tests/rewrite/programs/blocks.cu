// What the threads of a block share, and how they leave it.
#include "constructs.h"

using constructs::dawdle;
using constructs::mixed;

// ---- shared memory: slow warps still read what fast ones would overwrite for the next block

__global__ void reversed(unsigned* out) {
    __shared__ unsigned tile[128];
    tile[threadIdx.x] = mixed(blockIdx.x * 128 + threadIdx.x);
    __syncthreads();
    const unsigned late = dawdle(blockIdx.x);
    out[blockIdx.x * 128 + threadIdx.x] += tile[(127 - threadIdx.x) ^ (late == 1)] ^ late;
}
void static_shared(unsigned* out) { reversed<<<96, 128>>>(out); }

__global__ void rotated(unsigned* out, unsigned by) {
    extern __shared__ unsigned room[];
    for (unsigned round = 0; round < 3; ++round) {
        room[threadIdx.x] = mixed(blockIdx.x + round * threadIdx.x);
        __syncthreads();
        out[blockIdx.x * 96 + threadIdx.x] += dawdle(room[(threadIdx.x + by) % 96]);
        __syncthreads();
    }
}
void dynamic_shared(unsigned* out) { rotated<<<110, 96, 96 * sizeof(unsigned)>>>(out, 17); }

__device__ unsigned sum_of_block(unsigned value) {
    __shared__ unsigned sums[4];
    for (int other = 16; other > 0; other /= 2) value += __shfl_xor_sync(~0u, value, other);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    return sums[0] + sums[1] + sums[2] + sums[3];
}
__global__ void sums(unsigned* out) {
    out[blockIdx.x * 128 + threadIdx.x] += dawdle(sum_of_block(mixed(blockIdx.x ^ threadIdx.x)));
}
void shared_in_function(unsigned* out) { sums<<<100, 128>>>(out); }

// ---- returns ahead of a barrier or a warp-wide operation

__global__ void guarded(unsigned* out, unsigned count) {
    __shared__ unsigned seen[96];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 5 == 3 || i >= count) return;
    seen[threadIdx.x] = i;
    __syncthreads();
    const unsigned other = (threadIdx.x + 5) % 95, there = blockIdx.x * blockDim.x + other;
    out[i] += dawdle(there % 5 == 3 || there >= count ? 1 : seen[other]);
}
void early_return(unsigned* out) { guarded<<<90, 96>>>(out, 90 * 96 - 50); }

__global__ void rows_of_warps(unsigned* out, unsigned count) {
    const unsigned row = blockIdx.x * 4 + threadIdx.x / 32;
    if (row >= count) return;
    unsigned sum = mixed(row + threadIdx.x % 32);
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
    if (threadIdx.x % 32 == 0) out[row] += dawdle(sum);
}
void early_return_warps(unsigned* out) { rows_of_warps<<<120, 128>>>(out, 120 * 4 - 7); }

__device__ unsigned mine() { return blockIdx.x; }
__device__ unsigned everybody() { return gridDim.x; }
__device__ unsigned (*const asks[])() = {mine, everybody};
__global__ void guarded_and_indirect(unsigned* out, const unsigned* which) {
    __shared__ unsigned votes;
    if (threadIdx.x == 0) votes = 0;
    if (threadIdx.x % 3 == 2) return;
    __syncthreads();
    atomicAdd(&votes, asks[which[0] & 1]());
    __syncthreads();
    atomicAdd(&out[asks[0]() * 32 + threadIdx.x % 32], dawdle(votes + asks[1]()));
}
void early_return_indirect(unsigned* out) { guarded_and_indirect<<<100, 96>>>(out + 1, out); }

// ---- blocks of one warp; bounds; copies under way when the body ends

__global__ void __launch_bounds__(32) warp_wide(unsigned* out) {
    __shared__ unsigned tile[32];
    tile[threadIdx.x] = blockIdx.x + threadIdx.x;
    __syncwarp();
    out[blockIdx.x * 32 + threadIdx.x] +=
        tile[31 - threadIdx.x] + __ballot_sync(~0u, threadIdx.x % 3 == blockIdx.x % 3);
}
void one_warp(unsigned* out) { warp_wide<<<200, 32>>>(out); }

__global__ void __launch_bounds__(128, 2) bounded(unsigned* out) {
    unsigned values[16];
    for (unsigned i = 0; i < 16; ++i) values[i] = mixed(blockIdx.x + i * threadIdx.x);
    unsigned sum = 0;
    for (unsigned i = 0; i < 16; ++i) sum = sum * 3 + values[(i * 7 + threadIdx.x) % 16];
    out[blockIdx.x * 128 + threadIdx.x] += dawdle(sum);
}
void launch_bounds(unsigned* out) { bounded<<<100, 128>>>(out); }

__global__ void leaves_copies(unsigned* out, const unsigned* in) {
    __shared__ __align__(16) unsigned room[64];
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&room[threadIdx.x]));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(in + threadIdx.x));
    out[blockIdx.x * 64 + threadIdx.x] += dawdle(blockIdx.x);
}
void copies_in_flight(unsigned* out) { leaves_copies<<<110, 64>>>(out + 64, out); }

int main(int argc, char** argv) {
    return constructs::run(argc, argv,
                           {{"static_shared", static_shared},
                            {"dynamic_shared", dynamic_shared},
                            {"shared_in_function", shared_in_function},
                            {"early_return", early_return},
                            {"early_return_warps", early_return_warps},
                            {"early_return_indirect", early_return_indirect},
                            {"one_warp", one_warp},
                            {"launch_bounds", launch_bounds},
                            {"copies_in_flight", copies_in_flight}});
}
