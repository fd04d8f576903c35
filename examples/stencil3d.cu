// A stencil of seven points on a regular 3-D grid. Blocks tile all three dimensions; each thread walks kDepth
// points along z and keeps the points behind, at and ahead of it in registers. Points at the border stay as
// they are.
#include "example.h"

constexpr int kThreadsX = 32, kThreadsY = 4, kDepth = 64;
constexpr float kCentre = 0.4f, kAround = 0.1f;

__host__ __device__ float initial(uint32_t index) { return example::uniform(index, 1, -1, 1); }

__host__ __device__ float updated(float here, float sum) { return fmaf(kAround, sum, kCentre * here); }

__global__ void fill(float* first, float* second, unsigned size) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) first[i] = second[i] = initial(i);
}

__global__ void update(const float* __restrict__ from, float* __restrict__ to, int nx, int ny, int nz) {
    const int x = 1 + blockIdx.x * kThreadsX + threadIdx.x, y = 1 + blockIdx.y * kThreadsY + threadIdx.y;
    const int first = 1 + blockIdx.z * kDepth, last = min(first + kDepth, nz - 1);
    if (x >= nx - 1 || y >= ny - 1) return;
    const size_t plane = static_cast<size_t>(nx) * ny;
    size_t i = first * plane + static_cast<size_t>(y) * nx + x;
    float behind = from[i - plane], here = from[i];
    for (int z = first; z < last; ++z, i += plane) {
        const float ahead = from[i + plane];
        to[i] = updated(here, (behind + ahead) + (from[i - 1] + from[i + 1]) + (from[i - nx] + from[i + nx]));
        behind = here;
        here = ahead;
    }
}

float value_on_cpu(uint32_t index, uint32_t nx, uint32_t ny, uint32_t nz) {
    const uint32_t plane = nx * ny, x = index % nx, y = index / nx % ny, z = index / plane;
    if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1) return initial(index);
    return updated(initial(index), (initial(index - plane) + initial(index + plane)) +
                                       (initial(index - 1) + initial(index + 1)) +
                                       (initial(index - nx) + initial(index + nx)));
}

int main(int argc, char** argv) {
    const auto options = example::parse_options(argc, argv, "stencil3d", "one update of a 7-point stencil");
    const int nx = options.pick(64, 1024, 2048), ny = options.scaled(options.pick(32, 1024, 1024), kThreadsY),
              nz = options.pick(20, 240, 1200);
    const unsigned size = static_cast<unsigned>(nx) * ny * nz;
    example::DeviceArray<float> from(size), to(size);
    fill<<<example::blocks_for(size, 256), 256>>>(from.data(), to.data(), size);

    const dim3 block(kThreadsX, kThreadsY);
    const dim3 grid(example::blocks_for(nx - 2, kThreadsX), example::blocks_for(ny - 2, kThreadsY),
                    example::blocks_for(nz - 2, kDepth));
    example::Timer timer("update", update);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        update<<<grid, block>>>(from.data(), to.data(), nx, ny, nz);
    timer.stop(options.iterations);

    example::Report report;
    report.check("values", to, 1 << 16, [&](size_t i, float value) {
        return value == value_on_cpu(static_cast<uint32_t>(i), nx, ny, nz);
    });
    report.fold(to);
    return report.finish(timer);
}
