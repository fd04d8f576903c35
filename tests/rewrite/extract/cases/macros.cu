//! -DWIDTH=4
// Macros are expanded, but for CUDA's own; what another architecture or the host sees is left out.
#include <cassert>
#include <cfloat>
#include <cmath>
#define THREADS 128
#define KERNEL(name, op)                                       \
    __global__ void __launch_bounds__(THREADS, 2) name(float* a) { \
        const int i = blockIdx.x;                              \
        a[i] = a[i] op WIDTH;                                  \
    }
#define NOTHING
KERNEL(add, +)
KERNEL(subtract, -)

template <int kSteps>
__device__ float sum(const float* a) {
    float all = 0;   // grows
#pragma unroll kSteps
    for (int i = 0; i < kSteps; ++i) all += a[i];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) all += a[i];
    return all;
}

NOTHING __global__ void check(float* a) {
#ifdef __CUDA_ARCH__
    assert(a[0] < FLT_MAX && a[1] > THREADS);
#else
    host_only();
#endif
#if __CUDA_ARCH__ >= 900
    a[2] = sum<8>(a);
#else
    a[2] = 0;
#endif
    a[3] = __LINE__;
}
