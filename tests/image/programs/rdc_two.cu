__device__ int counter;

__device__ int helper(int x) {
    volatile int local[4];
    local[x & 3] = x;
    return local[1] + counter;
}

__global__ void second(int* x, float y) {
    __shared__ int s[16];
    s[threadIdx.x % 16] = helper(static_cast<int>(y));
    __syncthreads();
    x[0] = s[1];
}
