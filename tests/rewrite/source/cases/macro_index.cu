//! nvrtc
// Macros are left alone: where they are used, the names mean something else.
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#define FOR_EACH(i, n) for (int i = INDEX; i < (n); i += gridDim.x * blockDim.x)
__device__ int place() { return INDEX; }
__global__ void fill(int* a, int n) { FOR_EACH(i, n) a[i] = place(); }
