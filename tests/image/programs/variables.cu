// One kernel, and variables of each kind that it uses or does not: -DUSES=0 and so on, a table in
// nvcc_test.py.
__device__ int number = 3;
__constant__ int table[4];
__managed__ int shared_with_host;
__device__ int pointed_to[4];
__device__ int* pointer = pointed_to;  // no code names either

__device__ __noinline__ int through_a_call(int i) {
#if USES == 4
    return pointed_to[i];
#else
    return i + 1;
#endif
}

__global__ void kernel(int* x, float* y) {
#if USES == 1
    x[threadIdx.x] += number;
#elif USES == 2
    x[threadIdx.x] += table[x[0] & 3];
#elif USES == 3
    x[threadIdx.x] += shared_with_host;
#elif USES == 5
    y[threadIdx.x] = sinf(y[0]) + static_cast<float>(cos(static_cast<double>(y[1])));  // with NVIDIA's tables
#elif USES == 6
    atomicAdd_system(x, 1);
#else
    __shared__ int scratch[32];
    scratch[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] += scratch[through_a_call(static_cast<int>(threadIdx.x)) & 31];
#endif
}
