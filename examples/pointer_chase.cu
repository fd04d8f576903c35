// Pointer chasing: each thread follows a chain through a large array, one entry after the other. Nothing but
// the latency of memory.
//
// The array is one cycle through all its entries, next(i) = (kFactor * i + kOffset) mod size with a size that
// is a power of two, so that the CPU can tell where many steps lead without taking them.
#include "example.h"

constexpr int kThreads = 256;
constexpr uint32_t kFactor = 1664525, kOffset = 1013904223;

__global__ void fill(uint32_t* next, uint32_t size) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) next[i] = (kFactor * i + kOffset) & (size - 1);
}

__global__ void chase(const uint32_t* next, uint32_t* ends, int steps) {
    const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t place = thread;
    for (int i = 0; i < steps; ++i) place = next[place];
    ends[thread] = place;
}

int main(int argc, char** argv) {
    const auto options = example::parse_options(argc, argv, "pointer_chase", "follows chains through memory");
    const uint32_t size = options.pick(1u << 14, 1u << 26, 1u << 28);
    const unsigned blocks = options.scaled(options.pick(8u, 2048u, 16384u));
    const int steps = options.pick(64, 128, 128);
    example::DeviceArray<uint32_t> next(size), ends(blocks * kThreads);
    fill<<<size / kThreads, kThreads>>>(next.data(), size);

    example::Timer timer("chase", chase);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        chase<<<blocks, kThreads>>>(next.data(), ends.data(), steps);
    timer.stop(options.iterations);

    uint32_t factor = 1, offset = 0;  // of all steps in one
    for (int i = 0; i < steps; ++i) factor *= kFactor, offset = offset * kFactor + kOffset;
    example::Report report;
    report.check("threads", ends, ends.size(), [&](size_t thread, uint32_t end) {
        return end == ((factor * static_cast<uint32_t>(thread) + offset) & (size - 1));
    });
    report.fold(ends);
    return report.finish(timer);
}
