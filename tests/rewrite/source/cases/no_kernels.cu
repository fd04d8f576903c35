//! nvrtc
// Left alone: nothing here is a kernel.
__device__ int place() { return blockIdx.x; }
__device__ int counter;
