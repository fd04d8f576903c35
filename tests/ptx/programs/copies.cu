// Asynchronous copies, pipelines, barriers in shared memory.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace groups = cooperative_groups;

__global__ void pipelined(float* out, const float4* in) {
    __shared__ float4 tile[2][128];
    __pipeline_memcpy_async(&tile[0][threadIdx.x], in + threadIdx.x, sizeof(float4));
    __pipeline_commit();
    __pipeline_memcpy_async(&tile[1][threadIdx.x], in + 128 + threadIdx.x, sizeof(float4));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    out[threadIdx.x] = tile[0][threadIdx.x ^ 1].x + tile[1][threadIdx.x].y;
}

__global__ void grouped(int* out, const int* in) {
    extern __shared__ int shared[];
    auto block = groups::this_thread_block();
    groups::memcpy_async(block, shared, in, sizeof(int) * block.size());
    groups::wait(block);
    out[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

__global__ void barriers(int* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    barrier.wait(barrier.arrive());
    barrier.arrive_and_wait();
    out[threadIdx.x] = threadIdx.x;
}

__global__ void atomics(cuda::atomic<int, cuda::thread_scope_device>* a, cuda::atomic<unsigned long long>* b,
                        int* out) {
    a->fetch_add(1, cuda::memory_order_relaxed);
    b->store(5, cuda::memory_order_release);
    int expected = 3;
    out[0] = a->load(cuda::memory_order_acquire) + static_cast<int>(b->exchange(7)) +
             a->compare_exchange_strong(expected, 9, cuda::memory_order_acq_rel);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
}

__global__ void two_stages(float* out, const float* in, int n) {
    __shared__ float stage[2][64];
    auto block = groups::this_thread_block();
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto pipeline = cuda::make_pipeline(block, &state);
    for (int i = 0; i < n; ++i) {
        pipeline.producer_acquire();
        cuda::memcpy_async(block, stage[i & 1], in + 64 * i, sizeof(float) * 64, pipeline);
        pipeline.producer_commit();
        pipeline.consumer_wait();
        out[threadIdx.x] += stage[i & 1][threadIdx.x];
        pipeline.consumer_release();
    }
}
