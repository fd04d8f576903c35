// A client for the fault tests. It prints "READY" when its work is under way, and leaves with 3
// after an error, saying how long after the last success it came.
//   add            one small vector addition
//   work SECONDS   additions with checked results until then
//   copy SECONDS   large pageable copies both ways
//   launch SECONDS long kernels, queued without waiting
//   hold MIB       holds memory until its standard input ends
//   fill MIB       allocates pieces of that size until memory is out, then holds and reports
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "program.h"

using Clock = std::chrono::steady_clock;

__global__ void add(const int* a, const int* b, int* sum) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    sum[i] = a[i] + b[i];
}
__global__ void spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

Clock::time_point last_success = Clock::now();

// Reports an error and ends the program as a well-behaved one would.
bool good(cudaError_t status, const char* what) {
    if (status == cudaSuccess) {
        last_success = Clock::now();
        return true;
    }
    const auto since =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - last_success).count();
    std::printf("error %d %s in %s, %lld ms after the last success\n", status, cudaGetErrorName(status), what,
                static_cast<long long>(since));
    std::fflush(stdout);
    return false;
}

void ready() {
    std::printf("READY\n");
    std::fflush(stdout);
}

void wait_for_end_of_input() {
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
}

int additions(double seconds) {
    constexpr int kCount = 256;
    int a[kCount], b[kCount], sum[kCount], *device = nullptr;
    if (!good(cudaMalloc(&device, 3 * sizeof a), "malloc")) return 3;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    long long rounds = 0;
    do {
        for (int i = 0; i < kCount; ++i) a[i] = i, b[i] = static_cast<int>(rounds * i);
        if (!good(cudaMemcpy(device, a, sizeof a, cudaMemcpyHostToDevice), "copy")) return 3;
        if (!good(cudaMemcpy(device + kCount, b, sizeof b, cudaMemcpyHostToDevice), "copy")) return 3;
        add<<<1, kCount>>>(device, device + kCount, device + 2 * kCount);
        if (!good(cudaGetLastError(), "launch")) return 3;
        if (!good(cudaMemcpy(sum, device + 2 * kCount, sizeof sum, cudaMemcpyDeviceToHost), "copy back"))
            return 3;
        for (int i = 0; i < kCount; ++i)
            if (sum[i] != a[i] + b[i]) return std::printf("WRONG sum in round %lld\n", rounds), 1;
        if (rounds++ == 0 && seconds > 0) ready();
    } while (Clock::now() < end);
    if (!good(cudaFree(device), "free")) return 3;
    std::printf("right\n");
    return 0;
}

int copies(double seconds) {
    const size_t bytes = 256 << 20;
    std::vector<char> host(bytes, 1);
    char* device;
    if (!good(cudaMalloc(&device, bytes), "malloc")) return 3;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    for (bool first = true; Clock::now() < end; first = false) {
        if (!good(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice), "copy")) return 3;
        if (first) ready();
        if (!good(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost), "copy back")) return 3;
    }
    return 0;
}

int launches(double seconds) {
    void* held;
    if (!good(cudaMalloc(&held, 512 << 20), "malloc")) return 3;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    for (bool first = true; Clock::now() < end; first = false) {
        for (int i = 0; i < 5; ++i) spin<<<8, 32>>>(20'000'000);  // about 10 ms each
        if (!good(cudaGetLastError(), "launch")) return 3;
        if (first)
            ready();
        else if (!good(cudaDeviceSynchronize(), "synchronize"))
            return 3;
    }
    return 0;
}

int hold(size_t mib) {
    void* held;
    if (!good(cudaMalloc(&held, mib << 20), "malloc") || !good(cudaMemset(held, 0, mib << 20), "memset"))
        return 3;
    if (!good(cudaDeviceSynchronize(), "synchronize")) return 3;
    ready();
    wait_for_end_of_input();
    return good(cudaFree(held), "free") ? 0 : 3;
}

int fill(size_t mib) {
    size_t free = 0, total = 0, got = 0;
    void* piece;
    cudaError_t status;
    if (!good(cudaMemGetInfo(&free, &total), "memory info")) return 3;
    while ((status = cudaMalloc(&piece, mib << 20)) == cudaSuccess) got += mib;
    std::printf("got %zu MiB, free %zu and total %zu MiB at the start, then %d %s\n", got, free >> 20,
                total >> 20, status, cudaGetErrorName(status));
    ready();
    wait_for_end_of_input();
    return status == cudaErrorMemoryAllocation ? 0 : 1;
}

int main(int count, char** arguments) {
    const std::string mode = count > 1 ? arguments[1] : "add";
    const int number = count > 2 ? std::atoi(arguments[2]) : 60;
    if (mode == "add") return additions(0);
    if (mode == "work") return additions(number);
    if (mode == "copy") return copies(number);
    if (mode == "launch") return launches(number);
    if (mode == "hold") return hold(number);
    if (mode == "fill") return fill(number);
    return 2;
}
