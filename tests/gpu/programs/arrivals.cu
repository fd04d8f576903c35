// A service that gets a request now and then: a small kernel every so often, waited for.
//
//     arrivals [REQUESTS [MICROSECONDS_BETWEEN [ROUNDS [times [BLOCKS]]]]]
//
// With `times` it prints how long each request took, which is not the same in every run, and when it ended.
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "program.h"

constexpr int kThreads = 256;

__global__ void serve(unsigned* values, unsigned request, int rounds) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = values[i] + request;
    for (int round = 0; round < rounds; ++round) value = value * 1664525u + 1013904223u;
    values[i] = value;
}

int main(int argc, char** argv) {
    const int requests = argc > 1 ? std::atoi(argv[1]) : 20;
    const std::chrono::microseconds between(argc > 2 ? std::atoi(argv[2]) : 2000);
    const int rounds = argc > 3 ? std::atoi(argv[3]) : 64;
    const int blocks = argc > 5 ? std::atoi(argv[5]) : 264;
    using Clock = std::chrono::steady_clock;
    std::vector<std::pair<Clock::time_point, Clock::time_point>> times;
    unsigned* values = nullptr;
    CHECK(cudaMalloc(&values, blocks * kThreads * sizeof *values));
    CHECK(cudaMemset(values, 0, blocks * kThreads * sizeof *values));
    auto next = Clock::now();
    for (int request = 0; request < requests; ++request) {
        const auto begun = Clock::now();
        serve<<<blocks, kThreads>>>(values, static_cast<unsigned>(request), rounds);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        times.emplace_back(begun, Clock::now());
        std::this_thread::sleep_until(next += between);
    }
    std::vector<unsigned> found(blocks * kThreads);
    CHECK(cudaMemcpy(found.data(), values, found.size() * sizeof found[0], cudaMemcpyDeviceToHost));
    unsigned expected = 0;
    for (int request = 0; request < requests; ++request) {
        expected += static_cast<unsigned>(request);
        for (int round = 0; round < rounds; ++round) expected = expected * 1664525u + 1013904223u;
    }
    Result result;
    for (unsigned value : found) {
        if (value == expected) continue;
        result.expect(false, "what the requests left");
        break;
    }
    result.fold(found.data(), found.size() * sizeof found[0]);
    CHECK(cudaFree(values));
    if (argc > 4) {
        std::printf("times_ms");
        for (const auto& [begun, ended] : times)
            std::printf(" %.6f", std::chrono::duration<double, std::milli>(ended - begun).count());
        std::printf("\nends_s");
        for (const auto& [begun, ended] : times)
            std::printf(" %.6f", std::chrono::duration<double>(ended.time_since_epoch()).count());
        std::printf("\n");
    }
    return result.finish();
}
