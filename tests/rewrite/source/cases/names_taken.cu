//! nvcc
__global__ void own_index(float* a, int blockIdx) { a[threadIdx.x] = blockIdx; }
__global__ void own_size(float* a, int gridDim) { a[blockIdx.x] = gridDim; }
__global__ void own_worker(float* a, int smt_worker) { a[blockIdx.x] = smt_worker; }
__global__ void own_variable(float* a) {
    int count = 3, gridDim = 4;
    a[blockIdx.x] = count + gridDim;
}
// Left to themselves: names of the hardware's that a worker's block shares, and names in a scope further in.
__global__ void own_thread(float* a, int threadIdx) { a[threadIdx] = blockIdx.x; }
__global__ void further_in(float* a) {
    for (int gridDim = 0; gridDim < 4; ++gridDim) a[gridDim] = blockIdx.x;
}
