// A kernel of an image without variables of its own.
__global__ void plain(float* x) { x[threadIdx.x] = sinf(x[threadIdx.x]); }
