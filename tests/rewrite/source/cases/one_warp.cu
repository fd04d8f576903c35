//! nvrtc --name=any<16>
// Blocks of no more threads than a warp has.
constexpr int kWide = 32;
extern "C" __global__ void __launch_bounds__(kWide) warp(int* a) { a[blockIdx.x] = __shfl_sync(~0u, a[threadIdx.x], 0); }
extern "C" __global__ void __launch_bounds__(kWide + 1) wider(int* a) { a[blockIdx.x] = 1; }
template <int N>
__global__ void __launch_bounds__(N) any(int* a) { a[blockIdx.x] = N; }
