//! nvrtc
// Attributes, comments and line breaks of a declaration go to both kernels.
#define THREADS 128
extern "C" __global__ void __launch_bounds__(THREADS, 4)
bounded(const float* __restrict__ a,   // in
        float* __restrict__ b)         // out
{
    b[blockIdx.x] = a[blockIdx.x];
}

__launch_bounds__(THREADS) __global__ static void turned(float* a) { a[blockIdx.x] = 1; }
[[maybe_unused]] __global__ void __maxnreg__(32) limited(float* a) { a[blockIdx.x] = 1; }

// Twin: what stays as it is keeps its own, once.
__global__ void __launch_bounds__(THREADS) stays(unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); }
