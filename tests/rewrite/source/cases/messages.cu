//! nvrtc
// printf and assert: lines stay what they were.
__global__ void talks(int n) {
    printf("block %d of %d, line %d\n", blockIdx.x, gridDim.x, __LINE__);
    assert(n > 0 &&
           n < 10);
    if (n == 5) __trap();
}
__device__ int line = __LINE__;
