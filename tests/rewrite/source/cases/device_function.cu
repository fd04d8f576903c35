//! nvrtc
// A function that reads the index begins with a variable of that name; one that does not is left alone.
__device__ int place(int scale) { return (blockIdx.x + gridDim.x * blockIdx.y) * scale; }
__device__ int through(int scale) { return place(scale) + 1; }
__device__ int quiet(int scale) { return scale * blockDim.x + threadIdx.x; }
__device__ int unused() { return blockIdx.x; }

__global__ void reads(int* a) { a[through(2)] = quiet(3); }
__global__ void does_not_read(int* a) { a[blockIdx.x] = quiet(3); }
