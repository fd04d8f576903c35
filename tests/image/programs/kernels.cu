// Kernels of which the number of registers and the stack differ.
__device__ int table[64];

__global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor + table[i & 63];
}

template <int N>
__global__ void many_registers(double* x) {
    double a[N];
    for (int i = 0; i < N; ++i) a[i] = x[i] * threadIdx.x;
    for (int k = 0; k < 9; ++k)
        for (int i = 0; i < N; ++i) a[i] = a[i] * a[(i + 1) % N] + 1;
    for (int i = 0; i < N; ++i) x[i] = a[i];
}
template __global__ void many_registers<8>(double*);
template __global__ void many_registers<40>(double*);

__global__ void stack(int* x, int at) {
    volatile int local[100];
    for (int i = 0; i < 100; ++i) local[i] = x[i];
    x[0] = local[at];
}

__device__ __noinline__ int called(int* x) {
    volatile int local[10];
    for (int i = 0; i < 10; ++i) local[i] = x[i];
    return local[x[0]];
}
__global__ void calls(int* x) { x[1] = called(x) + called(x + 1); }
