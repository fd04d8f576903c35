// Vector addition: c = a + b, one element a thread. Nothing but memory traffic.
#include "example.h"

constexpr int kThreads = 256;
constexpr uint32_t kSeedA = 1, kSeedB = 2;

__host__ __device__ float input(uint32_t index, uint32_t seed) {
    return example::uniform(index, seed, -1, 1);
}

__global__ void fill(float* a, float* b, unsigned size) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    a[i] = input(i, kSeedA);
    b[i] = input(i, kSeedB);
}

__global__ void add(const float* a, const float* b, float* c, unsigned size) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) c[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
    const auto options = example::parse_options(argc, argv, "vector_add", "adds two vectors");
    const unsigned size = options.scaled(options.pick(8'000u, 190'000'000u, 1'900'000'000u));
    const unsigned blocks = example::blocks_for(size, kThreads);

    example::DeviceArray<float> a(size), b(size), c(size);
    fill<<<blocks, kThreads>>>(a.data(), b.data(), size);

    example::Timer timer("add", add);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        add<<<blocks, kThreads>>>(a.data(), b.data(), c.data(), size);
    timer.stop(options.iterations);

    example::Report report;
    report.check("sums", c, 1 << 16, [](size_t i, float sum) {
        const auto index = static_cast<uint32_t>(i);
        return sum == input(index, kSeedA) + input(index, kSeedB);
    });
    report.fold(c);
    return report.finish(timer);
}
