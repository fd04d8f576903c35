//! nvrtc --name=deep<int>
static __global__ void fixed(int* a) { a[blockIdx.x] = 1; }
namespace {
__device__ int place() { return blockIdx.x; }
__global__ void hidden(int* a) { a[place()] = 2; }
template <class T> __global__ void deep(T* a) { a[blockIdx.x] = 3; }
}
template <class T> static __global__ void both(T* a) { a[blockIdx.x] = 4; }
template __global__ void both<int>(int*);

// Twins that stay as they are.
static __global__ void fixed_stays(unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); }
namespace {
__global__ void hidden_stays(unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); }
}
