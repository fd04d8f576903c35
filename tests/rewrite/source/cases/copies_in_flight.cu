//! nvcc
// The hardware ends a block's copies with the block; a worker goes on, so it waits for them.
#include <cuda_pipeline.h>
__global__ void starts(float4* a) {
    __shared__ float4 tile[32];
    __pipeline_memcpy_async(&tile[threadIdx.x], a + threadIdx.x, sizeof(float4));
    __pipeline_commit();
    a[blockIdx.x].x = 1;
}
