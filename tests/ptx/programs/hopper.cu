// Clusters, bulk copies and what else came with sm_90. Compiled for sm_90a only.
#include <cooperative_groups.h>

#include <cuda/barrier>
#include <cuda/ptx>

namespace groups = cooperative_groups;
namespace ptx = cuda::ptx;

__global__ void __cluster_dims__(2, 1, 1) clusters(int* out) {
    __shared__ int value;
    auto cluster = groups::this_cluster();
    value = cluster.block_rank();
    cluster.sync();
    int* other = cluster.map_shared_rank(&value, cluster.block_rank() ^ 1);
    out[blockIdx.x] = *other + cluster.num_blocks();
    cluster.barrier_wait(cluster.barrier_arrive());
}

__global__ void bulk(int* out, const int* in) {
    __shared__ alignas(16) int tile[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
        cuda::device::experimental::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    if (threadIdx.x == 0) cuda::memcpy_async(tile, in, cuda::aligned_size_t<16>(sizeof tile), barrier);
    barrier.arrive_and_wait();
    out[threadIdx.x] = tile[threadIdx.x];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, sizeof tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
}

struct Big {
    int v[40];
};
__global__ void grid_constant(const __grid_constant__ Big big, int* out) {
    out[threadIdx.x] = big.v[threadIdx.x] + *(&big.v[3] + threadIdx.x);
}
