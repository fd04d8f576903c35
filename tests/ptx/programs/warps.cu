// Cooperative groups, votes, shuffles, barriers, atomics, fences.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace groups = cooperative_groups;

__global__ void cooperative(int* out, const int* in) {
    groups::thread_block block = groups::this_thread_block();
    auto warp = groups::tiled_partition<32>(block);
    auto quad = groups::tiled_partition<4>(warp);
    int value = in[block.thread_rank()];
    value += groups::reduce(warp, value, groups::plus<int>()) +
             groups::reduce(quad, value, groups::greater<int>());
    value += groups::inclusive_scan(warp, value) + groups::exclusive_scan(warp, value, groups::plus<int>());
    auto active = groups::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(out, active.size());
    auto labelled = groups::labeled_partition(warp, value & 3);
    out[block.thread_rank()] = labelled.size() + quad.shfl_xor(value, 1) + warp.ballot(value > 3);
    block.sync();
    groups::this_grid().sync();
}

__global__ void votes(unsigned* out, const unsigned* in) {
    unsigned lane = threadIdx.x & 31, value = in[threadIdx.x];
    unsigned r = __ballot_sync(0xffffffff, value & 1) + __activemask();
    r += __all_sync(0xffffffff, value > 2) + __any_sync(0xffffffff, value > 9);
    r += __shfl_sync(0xffffffff, value, 3) + __shfl_up_sync(0xffffffff, value, 1) +
         __shfl_down_sync(0xffffffff, value, 2, 16);
    r += __shfl_xor_sync(0xffffffff, (unsigned long long)value, 4) +
         static_cast<unsigned>(__shfl_sync(0xffffffff, 1.5 * value, lane));
    r += __syncthreads_count(value & 1) + __syncthreads_and(value) + __syncthreads_or(value & 4);
#if __CUDA_ARCH__ >= 700
    int all;
    r += __match_any_sync(0xffffffff, value) + __match_all_sync(0xffffffff, value, &all) + all;
#endif
#if __CUDA_ARCH__ >= 800
    r += __reduce_add_sync(0xffffffff, value) + __reduce_max_sync(0xffffffff, value) +
         __reduce_xor_sync(0xffffffff, value);
#endif
    __syncwarp();
    __nanosleep(100);
    out[threadIdx.x] = r + clock() + static_cast<unsigned>(clock64());
}

__global__ void atomics(int* i, unsigned* u, float* f, double* d, unsigned long long* l, unsigned short* h) {
    __shared__ int shared[32];
    __shared__ unsigned long long wide;
    atomicAdd(&shared[threadIdx.x], 3);
    atomicAdd(&wide, 3ull);
    i[1] = atomicSub(i, 1) + atomicExch(i + 1, 4) + atomicMin(i + 2, 5) + atomicMax(i + 3, 6) +
           atomicCAS(i + 4, 1, 2);
    u[1] = atomicInc(u, 7) + atomicDec(u + 1, 8) + atomicAnd(u + 2, 9) + atomicOr(u + 3, 10) +
           atomicXor(u + 4, 11);
    f[1] = atomicAdd(f, 1.5f);
    d[1] = atomicAdd(d, 1.5);
    l[1] =
        atomicAdd(l, 3ull) + atomicMax(l + 1, 4ull) + atomicCAS(l + 2, 5ull, 6ull) + atomicAdd_block(l, 1ull);
    h[1] = atomicCAS(h, 1, 2);
    atomicAdd_system(i, 1);
    __threadfence_block();
    __threadfence();
    __threadfence_system();
    i[2] = shared[threadIdx.x] + static_cast<int>(wide) + *const_cast<volatile int*>(i + 5);
    i[3] = __ldg(i) + __ldcg(i + 1) + __ldcs(i + 2) + __ldlu(i + 3) + __ldcv(i + 4) + __ldca(i + 5);
    __stcg(i, 1);
    __stcs(i + 1, 2);
    __stwt(i + 2, 3);
    __stwb(i + 3, 4);
}

__global__ void named_barriers(int* out) {
    asm volatile("bar.sync 1, 64;");
    asm volatile("bar.arrive 2, %0;" ::"r"(64));
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; @p add.s32 %0, %0, 1; }" : "+r"(*out) : "r"(out[1]));
}
