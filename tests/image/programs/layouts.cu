// Kernels of which parameters, shared memory, barriers and limits of a launch differ. inspect_test.py has the
// table.
#include <cooperative_groups.h>

#include <cstdio>

struct Mixed {
    char c;
    double d;
    short s;
};
struct Large {
    char bytes[8000];
};

namespace layouts {
template <typename T>
__global__ void mixed(T* x, char c, Mixed m, short s) {
    x[0] = c + m.d + s;
}
template __global__ void mixed<float>(float*, char, Mixed, short);
}  // namespace layouts

__global__ void none() {}

__global__ void large(const __grid_constant__ Large large, int* x) { x[0] = large.bytes[x[1]]; }

__global__ void __launch_bounds__(256, 2) tile(float* x) {
    __shared__ float a[100];
    __shared__ double b[4];
    a[threadIdx.x % 100] = x[threadIdx.x];
    b[threadIdx.x % 4] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = a[(threadIdx.x + 1) % 100] + b[(threadIdx.x + 1) % 4];
}

__global__ void dynamic(int* x, int n) {
    extern __shared__ int s[];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[n];
}

__global__ void named_barriers(int* x) {
    asm volatile("bar.sync 3, 64;");
    asm volatile("bar.sync 5, 64;");
    x[0] = 1;
}

__global__ void grid(int* x) {
    cooperative_groups::this_grid().sync();
    x[0] = 1;
}

__global__ void prints(int n) { printf("%d\n", n); }

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) cluster(float* x) {
    cooperative_groups::this_cluster().sync();
    x[0] = 1;
}
__global__ void __launch_bounds__(128, 1, 8) at_most_8(float* x) { x[0] = 1; }
__global__ void __block_size__((64, 2, 1)) fixed_block(int* x) { x[0] = 2; }
#endif

int main() {}
