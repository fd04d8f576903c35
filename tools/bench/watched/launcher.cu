// What is watched: a program that does nothing but launch, for watched.py.
//
//   bench_watched   says that it is ready, in a line of JSON. For each line of its input, a number of
//   seconds, it
//     launches an empty kernel for so long, waits for the end now and then as programs do, and prints a line
//     of JSON: how many launches that were, and how long it took.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBetweenWaits = 256;

void check(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorName(status));
    std::exit(1);
}
#define CHECK(call) check(call, #call)

double since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

}  // namespace

extern "C" __global__ void nothing() {}

namespace {

void launch_some() {
    for (int i = 0; i < kBetweenWaits; ++i) nothing<<<1, 32>>>();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main() {
    launch_some();
    std::puts("{\"ready\": true}");
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin)) {
        const double seconds = std::atof(line);
        const auto begun = Clock::now();
        unsigned long long launches = 0;
        do {
            launch_some();
            launches += kBetweenWaits;
        } while (since(begun) < seconds);
        std::printf("{\"launches\": %llu, \"seconds\": %.6f}\n", launches, since(begun));
        std::fflush(stdout);
    }
}
