// Finite differences in three dimensions: one time step with a star of radius 4, as wave equations need.
//
// A block covers a tile of the x-y plane and walks along z. Each thread keeps the values before and behind
// its point in registers, as a queue; neighbours in the plane come from a tile in shared memory with a margin
// of kRadius. The outermost kRadius points of the volume are its boundary and stay as they are.
#include "example.h"

constexpr int kRadius = 4, kTileX = 32, kTileY = 16;

__constant__ float coefficients[kRadius + 1];
const std::vector<float> kCoefficients = {0.35f, 0.06f, 0.03f, 0.012f, 0.006f};

__host__ __device__ float initial(uint32_t index) { return example::uniform(index, 1, -1, 1); }

__global__ void fill(float* first, float* second, unsigned size) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) first[i] = second[i] = initial(i);
}

__global__ void __launch_bounds__(kTileX* kTileY)
    advance(const float* from, float* to, int nx, int ny, int nz) {
    __shared__ float tile[kTileY + 2 * kRadius][kTileX + 2 * kRadius];
    const int x = kRadius + blockIdx.x * kTileX + threadIdx.x,
              y = kRadius + blockIdx.y * kTileY + threadIdx.y;
    const int tx = threadIdx.x + kRadius, ty = threadIdx.y + kRadius;
    const size_t plane = static_cast<size_t>(nx) * ny;
    auto fetch = [&](int at_x, int at_y, int z) {
        return at_x < nx && at_y < ny ? from[z * plane + static_cast<size_t>(at_y) * nx + at_x] : 0.0f;
    };

    float behind[kRadius], here, ahead[kRadius];  // nearest first
    for (int r = 0; r < kRadius; ++r) behind[r] = fetch(x, y, kRadius - 1 - r);
    here = fetch(x, y, kRadius);
    for (int r = 0; r < kRadius; ++r) ahead[r] = fetch(x, y, kRadius + 1 + r);

    for (int z = kRadius; z < nz - kRadius; ++z) {
        tile[ty][tx] = here;
        if (threadIdx.x < kRadius) {
            tile[ty][tx - kRadius] = fetch(x - kRadius, y, z);
            tile[ty][tx + kTileX] = fetch(x + kTileX, y, z);
        }
        if (threadIdx.y < kRadius) {
            tile[ty - kRadius][tx] = fetch(x, y - kRadius, z);
            tile[ty + kTileY][tx] = fetch(x, y + kTileY, z);
        }
        __syncthreads();
        float value = coefficients[0] * here;
#pragma unroll
        for (int r = 1; r <= kRadius; ++r) {
            const float sum = (behind[r - 1] + ahead[r - 1]) + (tile[ty][tx - r] + tile[ty][tx + r]) +
                              (tile[ty - r][tx] + tile[ty + r][tx]);
            value = fmaf(coefficients[r], sum, value);
        }
        if (x < nx - kRadius && y < ny - kRadius) to[z * plane + static_cast<size_t>(y) * nx + x] = value;
        __syncthreads();  // before the next plane overwrites the tile
#pragma unroll
        for (int r = kRadius - 1; r > 0; --r) behind[r] = behind[r - 1];
        behind[0] = here;
        here = ahead[0];
#pragma unroll
        for (int r = 0; r < kRadius - 1; ++r) ahead[r] = ahead[r + 1];
        if (z + 1 + kRadius < nz) ahead[kRadius - 1] = fetch(x, y, z + 1 + kRadius);
    }
}

float value_on_cpu(uint32_t index, uint32_t nx, uint32_t ny, uint32_t nz) {
    const uint32_t plane = nx * ny, x = index % nx, y = index / nx % ny, z = index / plane;
    auto inner = [](uint32_t at, uint32_t size) { return at >= kRadius && at < size - kRadius; };
    if (!inner(x, nx) || !inner(y, ny) || !inner(z, nz)) return initial(index);
    float value = kCoefficients[0] * initial(index);
    for (uint32_t r = 1; r <= kRadius; ++r) {
        const float sum = (initial(index - r * plane) + initial(index + r * plane)) +
                          (initial(index - r) + initial(index + r)) +
                          (initial(index - r * nx) + initial(index + r * nx));
        value = fmaf(kCoefficients[r], sum, value);
    }
    return value;
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "fdtd3d", "one step of a 3-D finite difference scheme");
    const int nx = options.pick(72, 1032, 1032),
              ny = 2 * kRadius + options.scaled(options.pick(28, 1024, 1024)),
              nz = options.pick(24, 136, 1160);
    const unsigned size = static_cast<unsigned>(nx) * ny * nz;
    CHECK(cudaMemcpyToSymbol(coefficients, kCoefficients.data(), sizeof coefficients));
    example::DeviceArray<float> from(size), to(size);
    fill<<<example::blocks_for(size, 256), 256>>>(from.data(), to.data(), size);

    const dim3 block(kTileX, kTileY);
    const dim3 grid(example::blocks_for(nx - 2 * kRadius, kTileX),
                    example::blocks_for(ny - 2 * kRadius, kTileY));
    example::Timer timer("advance", advance);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        advance<<<grid, block>>>(from.data(), to.data(), nx, ny, nz);
    timer.stop(options.iterations);

    example::Report report;
    report.check("values", to, 1 << 16, [&](size_t i, float value) {
        return value == value_on_cpu(static_cast<uint32_t>(i), nx, ny, nz);
    });
    report.fold(to);
    return report.finish(timer);
}
