// Sums and maxima in two passes: warp shuffles, dynamic shared memory, and a kernel whose block
// size is a launch parameter.
#include <algorithm>
#include <vector>

#include "program.h"

struct Sum {
    __host__ __device__ long long operator()(long long a, long long b) const { return a + b; }
};
struct Max {
    __host__ __device__ long long operator()(long long a, long long b) const { return a > b ? a : b; }
};

template <typename Operation>
__global__ void reduce(const long long* in, long long* out, int count, long long start, Operation operation) {
    extern __shared__ long long warps[];
    long long value = start;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        value = operation(value, in[i]);
    for (int offset = 16; offset > 0; offset /= 2)
        value = operation(value, __shfl_down_sync(0xffffffffu, value, offset));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) value = operation(value, warps[warp]);
    out[blockIdx.x] = value;
}

template <typename Operation>
void run(Result& result, int count, int blocks, int threads, long long start, Operation operation) {
    Random random;
    std::vector<long long> in(count);
    for (long long& value : in) value = random.below(1 << 30) - (1 << 29);
    long long reference = start;
    for (long long value : in) reference = operation(reference, value);

    long long *device_in, *partial, *device_out, answer = 0;
    CHECK(cudaMalloc(&device_in, count * sizeof(long long)));
    CHECK(cudaMalloc(&partial, blocks * sizeof(long long)));
    CHECK(cudaMalloc(&device_out, sizeof(long long)));
    CHECK(cudaMemcpy(device_in, in.data(), count * sizeof(long long), cudaMemcpyHostToDevice));
    const size_t shared = threads / 32 * sizeof(long long);
    reduce<<<blocks, threads, shared>>>(device_in, partial, count, start, operation);
    reduce<<<1, threads, shared>>>(partial, device_out, blocks, start, operation);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&answer, device_out, sizeof answer, cudaMemcpyDeviceToHost));
    result.expect(answer == reference, "reduction");
    std::printf("%d values, %d blocks of %d: %lld\n", count, blocks, threads, answer);
    result.fold(answer);
    CHECK(cudaFree(device_in));
    CHECK(cudaFree(partial));
    CHECK(cudaFree(device_out));
}

int main() {
    Result result;
    for (int threads : {32, 64, 256, 1024}) {
        run(result, 1 << 20, 264, threads, 0, Sum{});
        run(result, 99991, 17, threads, -(1ll << 40), Max{});
    }
    return result.finish();
}
