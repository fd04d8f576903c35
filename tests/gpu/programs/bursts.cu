// Launches in bursts, to compare two servers: a burst here, a burst there, many times.
//
//     bursts [ROUNDS [serve]]
//
// A launch takes the longer the more ROUNDS. With `serve` each line of input is a number of launches; they
// are made, waited for, and answered with the nanoseconds that took. Without, and at the end of input, it
// says whether the result is right.
#include <chrono>
#include <iostream>
#include <vector>

#include "program.h"

constexpr int kBlocks = 4 * 132, kThreads = 128;

__global__ void turn(unsigned* values, int rounds) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = values[i];
    for (int round = 0; round < rounds; ++round) value = value * 1664525u + 1013904223u;
    values[i] = value;
}

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 64;
    using Clock = std::chrono::steady_clock;
    unsigned* values = nullptr;
    CHECK(cudaMalloc(&values, kBlocks * kThreads * sizeof *values));
    CHECK(cudaMemset(values, 0, kBlocks * kThreads * sizeof *values));
    long launches = 0;
    const auto burst = [&](long count) {
        for (long i = 0; i < count; ++i) {
            turn<<<kBlocks, kThreads>>>(values, rounds);
            CHECK(cudaGetLastError());
        }
        CHECK(cudaDeviceSynchronize());
        launches += count;
    };
    if (argc > 2) {
        for (long count = 0; std::cin >> count;) {
            const auto begun = Clock::now();
            burst(count);
            std::printf("%lld\n",
                        static_cast<long long>(std::chrono::nanoseconds(Clock::now() - begun).count()));
            std::fflush(stdout);
        }
    } else {
        for (long count = 1; count <= 64; count *= 2) burst(count);
    }
    std::vector<unsigned> found(kBlocks * kThreads);
    CHECK(cudaMemcpy(found.data(), values, found.size() * sizeof found[0], cudaMemcpyDeviceToHost));
    unsigned expected = 0;
    for (long long step = 0; step < static_cast<long long>(launches) * rounds; ++step)
        expected = expected * 1664525u + 1013904223u;
    Result result;
    for (unsigned value : found) {
        if (value == expected) continue;
        result.expect(false, "what the launches left");
        break;
    }
    result.fold(found.data(), found.size() * sizeof found[0]);
    CHECK(cudaFree(values));
    return result.finish();
}
