//! nvrtc
extern "C" __global__ void one(int* a) { a[blockIdx.x] = 1; }
extern "C" {
__global__ void two(int* a) { a[blockIdx.x] = 2; }
}
extern "C" __global__ void three(int*);
__global__ void three(int* a) { a[blockIdx.x] = 3; }
