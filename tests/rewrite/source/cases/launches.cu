//! nvcc -rdc=true
// Refused: the kernel starts another one.
__global__ void child(int* a) { a[blockIdx.x] = 1; }
__global__ void parent(int* a) { child<<<1, 1>>>(a); }
