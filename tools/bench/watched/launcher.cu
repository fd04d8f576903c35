// What is watched: a program that does nothing but launch, for watched.py.
//
//   bench_watched [US]   says that it is ready, in a line of JSON. For each line of its input, a number of
//     seconds, it launches kernels for so long, waits for the end now and then as programs do, and prints a
//     line of JSON: how many launches that were, and how long it took. A kernel is empty, or takes some US
//     microseconds, so that the GPU is what the program waits for.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBetweenWaits = 256;
constexpr long long kCyclesAMicrosecond = 1700;

void check(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorName(status));
    std::exit(1);
}
#define CHECK(call) check(call, #call)

double since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

}  // namespace

extern "C" __global__ void nothing() {}
extern "C" __global__ void busy(long long cycles) {
    for (const long long begun = clock64(); clock64() - begun < cycles;) {
    }
}

namespace {

void launch_some(long long cycles) {
    for (int i = 0; i < kBetweenWaits; ++i)
        if (cycles)
            busy<<<4, 32>>>(cycles);
        else
            nothing<<<1, 32>>>();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main(int count, char** arguments) {
    const long long cycles = count > 1 ? std::atoll(arguments[1]) * kCyclesAMicrosecond : 0;
    launch_some(cycles);
    std::puts("{\"ready\": true}");
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin)) {
        const double seconds = std::atof(line);
        const auto begun = Clock::now();
        unsigned long long launches = 0;
        do {
            launch_some(cycles);
            launches += kBetweenWaits;
        } while (since(begun) < seconds);
        std::printf("{\"launches\": %llu, \"seconds\": %.6f}\n", launches, since(begun));
        std::fflush(stdout);
    }
}
