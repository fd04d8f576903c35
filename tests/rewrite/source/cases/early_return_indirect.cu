//! nvrtc
// Threads end ahead of a barrier, and functions that are not handed the index read it: one block a worker, which says for all of
// its threads which block that is.
__device__ int place() { return blockIdx.x; }
__device__ int (*table[])() = {place};
__global__ void by_function(int* a, int n) {
    if (threadIdx.x >= n) return;
    __syncthreads();
    a[place()] = n;
}
__global__ void by_pointer(int* a, int n) {
    if (threadIdx.x >= n) return;
    a[threadIdx.x] = __shfl_sync(__activemask(), table[a[0]](), 0);
}

// Twins. The function is handed nothing, but no thread ends early;
__global__ void all_stay(int* a) {
    __syncthreads();
    a[place()] = 1;
}

// threads end early, but the kernel itself reads the index;
__global__ void reads_itself(int* a, int n) {
    if (threadIdx.x >= n) return;
    __syncthreads();
    a[blockIdx.x] = n;
}

// both, and it stays as it is.
__device__ int elsewhere() { return blockIdx.x + 1; }
#define GUARD(n) if (threadIdx.x >= n) return
__global__ void in_macro(int* a, int n) {
    GUARD(n);
    __syncthreads();
    a[elsewhere()] = n;
}
