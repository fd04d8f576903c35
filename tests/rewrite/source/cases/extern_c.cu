//! nvrtc
extern "C" __global__ void one(int* a) { a[blockIdx.x] = 1; }
extern "C" {
__global__ void two(int* a) { a[blockIdx.x] = 2; }
}
extern "C" __global__ void three(int*);
__global__ void three(int* a) { a[blockIdx.x] = 3; }

// Twin: one in a block of these stays as it is, the other does not.
extern "C" {
__global__ void four(unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); }
__global__ void five(int* a) { a[blockIdx.x] = 5; }
}
