//! nvrtc
// Warps that return as a whole ahead of an operation of other warps: a worker may run one block after the other, where
// blocks are a whole number of warps wide.
__global__ void rows(const float* values, float* sums, unsigned count) {
    const unsigned row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= count) return;
    float sum = values[row * 32 + lane];
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
    if (lane == 0) sums[row] = sum;
}

template <int kWarps>
__global__ void numbered(int* a, int n) {
    int thread = threadIdx.x;
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
    const int row = thread / 32 + kWarps * threadIdx.y;
    if (n > 0) {
        if (warp >= n || row == n) return;
    }
    a[warp] = __any_sync(~0u, a[thread]);
}
template __global__ void numbered<4>(int*, int);

__global__ void masked(int* a, int n) {
    const unsigned first = threadIdx.x & ~31u;
    if (first >= n) return;
    __syncwarp();
    a[threadIdx.x] = first;
}

// Twins. A barrier of the block follows,
__global__ void barrier(int* a, int n) {
    if (threadIdx.x / 32 >= n) return;
    __syncthreads();
    a[threadIdx.x] = n;
}

// half a warp returns,
__global__ void halves(int* a, int n) {
    if (threadIdx.x / 16 >= n) return;
    a[threadIdx.x] = __shfl_sync(~0u, n, 0);
}

// the row changes for some lanes,
__global__ void changed(int* a, int n) {
    unsigned row = threadIdx.x / 32;
    if (a[threadIdx.x]) row += 1;
    if (row >= n) return;
    a[threadIdx.x] = __shfl_sync(~0u, n, 0);
}

// the return stands in a loop that lanes leave at different times,
__global__ void loop(int* a, int n) {
    const unsigned row = threadIdx.x / 32;
    for (int i = 0; i < a[threadIdx.x]; ++i)
        if (row >= n) return;
    a[threadIdx.x] = __shfl_sync(~0u, n, 0);
}

// only some lanes come to it,
__global__ void nested(int* a, int n) {
    if (threadIdx.x % 32 < 7) {
        if (blockIdx.x > n) return;
    }
    a[threadIdx.x] = __shfl_sync(~0u, n, 0);
}

// a number with a sign is divided,
__global__ void divided(int* a, int n) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread / 32 >= n) return;
    a[thread] = __shfl_sync(~0u, n, 0);
}

// it comes from memory.
__global__ void loaded(int* a, int n) {
    if (a[0] >= n) return;
    a[threadIdx.x] = __shfl_sync(~0u, n, 0);
}
