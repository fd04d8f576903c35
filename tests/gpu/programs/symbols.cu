// Device and constant variables: initial values, copies to and from symbols, their addresses and
// sizes, asynchronous symbol copies, a device function pointer.
#include "program.h"

__device__ int counter = 41;
__device__ float table[256];
__device__ unsigned char odd_bytes[13] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
__constant__ float coefficients[16];
__constant__ long long preset = 0x1122334455667788ll;

__device__ float square(float x) { return x * x; }
using Unary = float (*)(float);
__device__ Unary chosen = square;

__global__ void fill(float* out) {
    const int i = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 16; ++k) sum += coefficients[k] * (i % (k + 1));
    table[i] = sum;
    out[i] = chosen(sum);
    if (i == 0) counter += static_cast<int>(preset & 0xff);
}

int main() {
    Result result;
    float weights[16], values[256], squares[256];
    for (int i = 0; i < 16; ++i) weights[i] = static_cast<float>(i - 5);
    CHECK(cudaMemcpyToSymbol(coefficients, weights, sizeof weights));
    float* out;
    CHECK(cudaMalloc(&out, sizeof squares));
    fill<<<1, 256>>>(out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyFromSymbol(values, table, sizeof values));
    CHECK(cudaMemcpy(squares, out, sizeof squares, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 256; ++i) {
        float sum = 0;
        for (int k = 0; k < 16; ++k) sum += weights[k] * (i % (k + 1));
        right &= values[i] == sum && squares[i] == sum * sum;
    }
    result.expect(right, "table");

    int count = 0;
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    std::printf("counter: %d\n", count);
    result.expect(count == 41 + 0x88, "counter");

    void* address = nullptr;
    size_t bytes = 0;
    CHECK(cudaGetSymbolAddress(&address, table));
    CHECK(cudaGetSymbolSize(&bytes, table));
    std::printf("table: %zu bytes\n", bytes);
    CHECK(cudaMemset(static_cast<float*>(address) + 8, 0, 4 * sizeof(float)));
    CHECK(cudaMemcpyFromSymbol(values, table, sizeof values));
    result.expect(values[8] == 0 && values[11] == 0 && values[12] * values[12] == squares[12],
                  "memset of a symbol");
    CHECK(cudaGetSymbolSize(&bytes, odd_bytes));
    std::printf("odd_bytes: %zu bytes\n", bytes);

    // Part of a symbol, in a stream, from pinned memory.
    cudaStream_t stream;
    unsigned char *pinned, all[13];
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMallocHost(&pinned, 13));
    pinned[0] = 200;
    pinned[1] = 201;
    CHECK(cudaMemcpyToSymbolAsync(odd_bytes, pinned, 2, 5, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyFromSymbolAsync(pinned + 2, odd_bytes, 11, 2, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpyFromSymbol(all, odd_bytes, 13));
    result.expect(pinned[2] == 3 && pinned[5] == 200 && pinned[6] == 201 && pinned[12] == 13,
                  "part of a symbol");
    result.expect(all[0] == 1 && all[5] == 200 && all[12] == 13, "whole symbol");
    result.fold(values);
    result.fold(squares);
    result.fold(all);
    result.fold(count);
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(out));
    return result.finish();
}
