//! nvrtc
// Two kernels, one function.
__device__ int place() { return blockIdx.x; }
__global__ void one(int* a) { a[place()] = 1; }
__global__ void two(int* a) { a[place()] = 2; }
