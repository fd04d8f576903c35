//! nvcc
// Groups up to a block are fine; the grid's is refused.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void grid(int* a) { cg::this_grid().sync(); a[blockIdx.x] = 1; }
__global__ void block(int* a, int n) {
    if (threadIdx.x >= n) return;
    cg::thread_block group = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(group);
    a[blockIdx.x] = tile.shfl_down(a[0], 1);
    group.sync();
}
__global__ void indexed(int* a) { a[cg::this_thread_block().group_index().x] = 1; }
