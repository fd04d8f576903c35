//! nvrtc
extern __shared__ float dynamic[];

__global__ void reverse(float* a) {
    __shared__ float fixed[128];
    fixed[threadIdx.x] = a[blockIdx.x * 128 + threadIdx.x];
    dynamic[threadIdx.x] = fixed[threadIdx.x];
    __syncthreads();
    a[blockIdx.x * 128 + threadIdx.x] = fixed[127 - threadIdx.x] + dynamic[127 - threadIdx.x];
}

// Twin: stays as it is, and its memory with it.
__global__ void stays(unsigned long long* a) {
    __shared__ unsigned long long fixed;
    asm("mov.u64 %0, %%gridid;" : "=l"(*a));
    fixed = a[0] + static_cast<unsigned long long>(dynamic[0]);
    a[1] = fixed;
}
