// A tiled matrix product through shared memory. The entries are small whole numbers, so the float
// result is exact whatever the order of the additions.
#include <vector>

#include "program.h"

constexpr int kTile = 16;

__global__ void multiply(const float* a, const float* b, float* c, int rows, int columns, int inner) {
    __shared__ float tile_a[kTile][kTile];
    __shared__ float tile_b[kTile][kTile];
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int column = blockIdx.x * kTile + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < inner; start += kTile) {
        const int k_a = start + threadIdx.x, k_b = start + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < rows && k_a < inner ? a[row * inner + k_a] : 0;
        tile_b[threadIdx.y][threadIdx.x] = k_b < inner && column < columns ? b[k_b * columns + column] : 0;
        __syncthreads();
        for (int k = 0; k < kTile; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        __syncthreads();
    }
    if (row < rows && column < columns) c[row * columns + column] = sum;
}

void run(Result& result, int rows, int columns, int inner) {
    Random random;
    std::vector<float> a(rows * inner), b(inner * columns), c(rows * columns);
    for (float& value : a) value = static_cast<float>(random.below(17) - 8);
    for (float& value : b) value = static_cast<float>(random.below(17) - 8);
    float *device_a, *device_b, *device_c;
    CHECK(cudaMalloc(&device_a, a.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_b, b.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_c, c.size() * sizeof(float)));
    CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
    const dim3 block(kTile, kTile), grid((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
    multiply<<<grid, block>>>(device_a, device_b, device_c, rows, columns, inner);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    bool right = true;
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column) {
            float sum = 0;
            for (int k = 0; k < inner; ++k) sum += a[row * inner + k] * b[k * columns + column];
            right &= sum == c[row * columns + column];
        }
    }
    result.expect(right, "product");
    result.fold(c.data(), c.size() * sizeof(float));
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_c));
}

int main() {
    Result result;
    run(result, 16, 16, 16);
    run(result, 250, 130, 190);
    run(result, 512, 512, 256);
    return result.finish();
}
