// Dense matrix product, c = a * b. A block of 16 x 16 threads computes a tile of 32 x 32, four numbers a
// thread, with tiles of a and b in shared memory.
//
// Entries are small whole numbers, so that the sums are exact.
#include "example.h"

constexpr int kBlock = 16, kTile = 32;

__host__ __device__ float entry_of(uint32_t index, uint32_t seed) {
    return static_cast<float>(static_cast<int>(example::hash(index, seed) >> 28) - 8);
}

// All sizes are multiples of kTile.
__global__ void __launch_bounds__(kBlock* kBlock)
    multiply(const float* a, const float* b, float* c, int inner, int columns) {
    __shared__ float tile_a[kTile][kTile];
    __shared__ float tile_b[kTile][kTile + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
    float sums[2][2] = {};
    for (int first = 0; first < inner; first += kTile) {
#pragma unroll
        for (int y = ty; y < kTile; y += kBlock)
#pragma unroll
            for (int x = tx; x < kTile; x += kBlock) {
                tile_a[y][x] = a[static_cast<size_t>(first_row + y) * inner + first + x];
                tile_b[y][x] = b[static_cast<size_t>(first + y) * columns + first_column + x];
            }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kTile; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                sums[i / 2][i % 2] =
                    fmaf(tile_a[ty + i / 2 * kBlock][k], tile_b[k][tx + i % 2 * kBlock], sums[i / 2][i % 2]);
        __syncthreads();
    }
    for (int y = 0; y < 2; ++y)
        for (int x = 0; x < 2; ++x)
            c[static_cast<size_t>(first_row + ty + y * kBlock) * columns + first_column + tx + x * kBlock] =
                sums[y][x];
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "matrix_multiply", "multiplies two dense matrices");
    const int rows = options.scaled(options.pick(128, 2048, 8192), kTile),
              inner = options.pick(64, 2048, 4096), columns = options.pick(128, 2048, 4096);
    std::vector<float> a(static_cast<size_t>(rows) * inner), b(static_cast<size_t>(inner) * columns);
    example::in_parallel(a.size(), [&](size_t i) { a[i] = entry_of(static_cast<uint32_t>(i), 1); });
    example::in_parallel(b.size(), [&](size_t i) { b[i] = entry_of(static_cast<uint32_t>(i), 2); });
    example::DeviceArray<float> device_a(a), device_b(b), c(static_cast<size_t>(rows) * columns);

    const dim3 grid(columns / kTile, rows / kTile), block(kBlock, kBlock);
    example::Timer timer("multiply", multiply);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        multiply<<<grid, block>>>(device_a.data(), device_b.data(), c.data(), inner, columns);
    timer.stop(options.iterations);

    example::Report report;
    report.check("entries", c, 1 << 14, [&](size_t i, float value) {
        const size_t row = i / columns, column = i % columns;
        float expected = 0;
        for (int k = 0; k < inner; ++k)
            expected += a[row * inner + k] * b[static_cast<size_t>(k) * columns + column];
        return value == expected;
    });
    report.fold(c);
    return report.finish(timer);
}
