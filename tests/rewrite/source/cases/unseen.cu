//! nvrtc
// Refused: nobody knows what it reads. The toolkit's own functions are known.
__device__ int elsewhere(int);
__global__ void calls(int* a) { a[blockIdx.x] = elsewhere(1); }
__global__ void known(float* a) { a[blockIdx.x] = sinf(a[0]) + __ldg(a) + atomicAdd(a, 1.f); }
