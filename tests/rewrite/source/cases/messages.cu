//! nvrtc
// printf and assert: lines stay what they were.
__global__ void talks(int n) {
    printf("block %d of %d, line %d\n", blockIdx.x, gridDim.x, __LINE__);
    assert(n > 0 &&
           n < 10);
    if (n == 5) __trap();
}
__device__ int line = __LINE__;

// Twin: stays as it is, and so do its lines.
__global__ void stays(unsigned long long* a) {
    asm("mov.u64 %0, %%gridid;" : "=l"(*a));
    printf("line %d\n", __LINE__);
    assert(a[0] > 0 &&
           a[0] < 10);
}
