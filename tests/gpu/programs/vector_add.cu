// The usual first program, at sizes that do and do not fill their last block.
#include <vector>

#include "program.h"

template <typename Value>
__global__ void add(const Value* a, const Value* b, Value* sum, size_t count) {
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < count) sum[i] = a[i] + b[i];
}

template <typename Value>
void run(Result& result, size_t count) {
    Random random;
    std::vector<Value> a(count), b(count), sum(count);
    for (size_t i = 0; i < count; ++i) {
        a[i] = static_cast<Value>(random.below(1 << 20));
        b[i] = static_cast<Value>(random.below(1 << 20));
    }
    const size_t bytes = count * sizeof(Value);
    Value *device_a, *device_b, *device_sum;
    CHECK(cudaMalloc(&device_a, bytes));
    CHECK(cudaMalloc(&device_b, bytes));
    CHECK(cudaMalloc(&device_sum, bytes));
    CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));
    add<<<static_cast<unsigned>((count + 255) / 256), 256>>>(device_a, device_b, device_sum, count);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(sum.data(), device_sum, bytes, cudaMemcpyDeviceToHost));
    bool right = true;
    for (size_t i = 0; i < count; ++i) right &= sum[i] == a[i] + b[i];
    result.expect(right, "sum");
    result.fold(sum.data(), bytes);
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_sum));
}

int main() {
    Result result;
    for (size_t count : {size_t{1}, size_t{31}, size_t{256}, size_t{100003}, size_t{1} << 20}) {
        run<int>(result, count);
        run<float>(result, count);
        run<double>(result, count);
    }
    return result.finish();
}
