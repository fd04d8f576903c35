//! nvrtc
// Refused: place() cannot read the index in two ways, and the first kernel must stay as it is.
__device__ int place() { return blockIdx.x; }
__device__ int quiet() { return 1; }
__global__ void refused(unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(a[place()])); }
__global__ void shares(int* a) { a[place()] = 1; }
__global__ void does_not(int* a) { a[blockIdx.x] = quiet(); }
