//! nvrtc
extern __shared__ float dynamic[];

__global__ void reverse(float* a) {
    __shared__ float fixed[128];
    fixed[threadIdx.x] = a[blockIdx.x * 128 + threadIdx.x];
    dynamic[threadIdx.x] = fixed[threadIdx.x];
    __syncthreads();
    a[blockIdx.x * 128 + threadIdx.x] = fixed[127 - threadIdx.x] + dynamic[127 - threadIdx.x];
}
