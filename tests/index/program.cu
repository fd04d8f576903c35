// A program with all that only nvcc has names for, built into one image. Prints what its kernels made.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

namespace {
struct Pair {
    int a, b;
};
__device__ int hidden = 5;
__global__ void unnamed(int* out) {
    out[blockIdx.x] = atomicAdd(&hidden, 1) * 0 + static_cast<int>(blockIdx.x);
}
template <class T>
__global__ void with_type(T value, int* out) {
    out[blockIdx.x] += value.a * value.b;
}
}  // namespace
namespace inner {
static __constant__ int factor;
__device__ int counter;
}  // namespace inner
static __device__ int plain;
#define KERNEL(name, op)                                                 \
    static __global__ void name(int* out, int by) {                      \
        out[blockIdx.x] = out[blockIdx.x] op by * inner::factor + plain; \
        atomicAdd(&inner::counter, 1);                                   \
    }
KERNEL(add, +)
KERNEL(multiply, *)
template <int N>
__global__ void shift(int* out) {
#pragma unroll
    for (int i = 0; i < N; ++i) out[blockIdx.x] += i;
}

int main() {
    constexpr int kBlocks = 64;
    int* out = nullptr;
    const int factor = 3, one = 1;
    int hidden_now = 7, counter = 0;
    cudaMalloc(&out, kBlocks * sizeof(int));
    cudaMemcpyToSymbol(inner::factor, &factor, sizeof factor);
    cudaMemcpyToSymbol(plain, &one, sizeof one);
    cudaMemcpyToSymbol(hidden, &hidden_now, sizeof hidden_now);
    unnamed<<<kBlocks, 1>>>(out);
    with_type<<<kBlocks, 1>>>(Pair{2, 3}, out);
    add<<<kBlocks, 1>>>(out, 4);
    multiply<<<kBlocks, 1>>>(out, 2);
    shift<4><<<kBlocks, 1>>>(out);
    shift<8><<<kBlocks, 1>>>(out);
    std::vector<int> found(kBlocks);
    cudaMemcpy(found.data(), out, kBlocks * sizeof(int), cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(&counter, inner::counter, sizeof counter);
    cudaMemcpyFromSymbol(&hidden_now, hidden, sizeof hidden_now);
    bool right = counter == 2 * kBlocks && hidden_now == 7 + kBlocks;
    for (int i = 0; i < kBlocks; ++i) right &= found[i] == (i + 6 + 12 + 1) * 6 + 1 + 6 + 28;
    std::printf("%s: %d, counter %d, hidden %d: %s\n", right ? "right" : "wrong", found[kBlocks - 1], counter,
                hidden_now, cudaGetErrorString(cudaGetLastError()));
    return right ? 0 : 1;
}
