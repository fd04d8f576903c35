//! nvcc
// For the host too: the variable is for the device only.
__host__ __device__ int place(int i) {
#ifdef __CUDA_ARCH__
    return blockIdx.x + i;
#else
    return i;
#endif
}
__global__ void fill(int* a) { a[place(1)] = 1; }
int host() { return place(2); }
