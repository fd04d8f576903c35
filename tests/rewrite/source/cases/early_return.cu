//! nvrtc
// Threads that return before a barrier that others reach no longer count: they end, and a worker runs one block.
__device__ void sync() { __syncthreads(); }

__global__ void barrier(int* a, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __syncthreads();
    a[i] = i;
    return;
}

__global__ void warp(int* a, int n) {
    if (threadIdx.x >= n) { return; }
    a[blockIdx.x] = __shfl_down_sync(__activemask(), a[threadIdx.x], 1);
}

__global__ void called(int* a) {
    if (threadIdx.x & 1) return sync();
    sync();
}

__global__ void loop(int* a, int n) {
    for (int i = 0; i < n; ++i) {
        __syncthreads();
        if (a[threadIdx.x] == i) return;
    }
}

__global__ void assembly(int* a, int n) {
    if (threadIdx.x >= n) return;
    asm volatile("barrier.sync 1, 32;");
}
