//! nvrtc
// Returns that no barrier can follow stay, and so does a return of a lambda.
__global__ void no_barrier(int* a, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    a[i] = i;
}

__global__ void after(int* a, int n) {
    __syncthreads();
    for (int i = 0; i < n; ++i) __syncwarp();
    if (threadIdx.x) return;
    a[blockIdx.x] = n;
}

__global__ void last(int* a) {
    __syncthreads();
    a[blockIdx.x] = 1;
    return;
}

__global__ void in_lambda(int* a) {
    auto pick = [=](int i) { if (i > 3) return 0; return a[i]; };
    __syncthreads();
    a[blockIdx.x] = pick(threadIdx.x);
}
