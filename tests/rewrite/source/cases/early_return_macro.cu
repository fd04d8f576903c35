//! nvrtc
// Refused: the return that would have to change is a macro's. Without a barrier it may stay.
#define GUARD(i, n) if ((i) >= (n)) return
__global__ void barrier(int* a, int n) { GUARD(threadIdx.x, n); __syncthreads(); a[blockIdx.x] = n; }
__global__ void no_barrier(int* a, int n) { GUARD(threadIdx.x, n); a[blockIdx.x] = n; }
