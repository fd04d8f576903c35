//! nvrtc
// Refused: the loop's own variable has no room beside 48 KiB.
template <int N> __global__ void stages(float* a) {
    __shared__ float stage[N];
    stage[threadIdx.x] = a[blockIdx.x];
    __syncthreads();
    a[blockIdx.x] = stage[0];
}
template __global__ void stages<12288>(float*);

__global__ void nearly(float* a) {
    __shared__ float stage[12000];
    stage[threadIdx.x] = a[blockIdx.x];
    __syncthreads();
    a[blockIdx.x] = stage[0];
}
