// Programs whose memory together exceeds the GPU's, for swap.py.
//
//   bench_swap free                   MiB of the device that are free, in a line of JSON
//   bench_swap bandwidth MIB          what a copy between pinned host memory and the device takes
//   bench_swap touch MIB              writes to so much host memory, and says how long that took
//   bench_swap hold MIB               holds so much until its input ends, after READY
//   bench_swap work MIB PIECE PASSES  PASSES over all of so much memory, each with a check of each word
//   bench_swap time MIB PIECE SECONDS the same for so long; says how many passes that were
//   bench_swap cells MIB PIECE        a pass for each line of input; a line of JSON with its milliseconds
//
// work, time and cells have their memory in allocations of PIECE MiB, say READY when they have it, and in the
// end a line of JSON.
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCopies = 5;
constexpr size_t kFewestPieces = 4;  // so that a small program has some
constexpr unsigned kTouching = 8;    // threads
constexpr size_t kMostCopied = 256u << 20;

void check(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorName(status));
    std::exit(1);
}
#define CHECK(call) check(call, #call)

double seconds_since(Clock::time_point begun) {
    return std::chrono::duration<double>(Clock::now() - begun).count();
}

__device__ uint32_t word_of(uint32_t piece, size_t i, uint32_t pass) {
    return (static_cast<uint32_t>(i) * 2654435761u + piece * 40503u) ^ (pass * 2246822519u);
}

}  // namespace

extern "C" __global__ void fill(uint32_t* data, uint32_t piece, size_t n) {
    const size_t stride = size_t{gridDim.x} * blockDim.x;
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        data[i] = word_of(piece, i, 0);
}
// Each word is the last pass's, and becomes this one's.
extern "C" __global__ void pass_over(uint32_t* data, uint32_t piece, size_t n, uint32_t pass,
                                     unsigned long long* wrong) {
    const size_t stride = size_t{gridDim.x} * blockDim.x;
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
        if (data[i] != word_of(piece, i, pass - 1)) atomicAdd(wrong, 1ull);
        data[i] = word_of(piece, i, pass);
    }
}

namespace {

// The median of some copies, in bytes a second.
double bandwidth(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    std::vector<double> seconds;
    for (int i = 0; i <= kCopies; ++i) {
        const auto begun = Clock::now();
        CHECK(cudaMemcpy(to, from, bytes, kind));
        if (i > 0) seconds.push_back(seconds_since(begun));
    }
    std::sort(seconds.begin(), seconds.end());
    return static_cast<double>(bytes) / seconds[kCopies / 2];
}

// Of both directions together: one half out while the other half comes in.
double both_ways(char* pinned, char* memory, size_t bytes) {
    const size_t half = bytes / 2;
    cudaStream_t streams[2];
    for (cudaStream_t& each : streams) CHECK(cudaStreamCreate(&each));
    Clock::time_point begun;
    for (int i = 0; i <= kCopies; ++i) {
        if (i == 1) {
            CHECK(cudaDeviceSynchronize());
            begun = Clock::now();
        }
        CHECK(cudaMemcpyAsync(pinned, memory, half, cudaMemcpyDeviceToHost, streams[0]));
        CHECK(cudaMemcpyAsync(memory + half, pinned + half, half, cudaMemcpyHostToDevice, streams[1]));
    }
    CHECK(cudaDeviceSynchronize());
    return 2.0 * kCopies * static_cast<double>(half) / seconds_since(begun);
}

int measure(size_t bytes) {
    bytes = std::min(bytes, kMostCopied);
    void *pinned = nullptr, *memory = nullptr;
    CHECK(cudaMallocHost(&pinned, bytes));
    CHECK(cudaMalloc(&memory, bytes));
    const double out = bandwidth(pinned, memory, bytes, cudaMemcpyDeviceToHost),
                 in = bandwidth(memory, pinned, bytes, cudaMemcpyHostToDevice);
    std::printf("{\"out_bytes_per_s\": %.0f, \"in_bytes_per_s\": %.0f, \"both_bytes_per_s\": %.0f}\n", out,
                in, both_ways(static_cast<char*>(pinned), static_cast<char*>(memory), bytes));
    return 0;
}

int say_free() {
    size_t free = 0, total = 0;
    CHECK(cudaMemGetInfo(&free, &total));
    std::printf("{\"free_mib\": %zu, \"total_mib\": %zu}\n", free >> 20, total >> 20);
    return 0;
}

void say_ready() {
    std::puts("READY");
    std::fflush(stdout);
}

int touch(size_t bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return std::perror("mmap"), 1;
    madvise(memory, bytes, MADV_HUGEPAGE);
    const auto begun = Clock::now();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kTouching; ++i)
        threads.emplace_back([=] {
            const size_t from = bytes / kTouching * i,
                         to = i + 1 < kTouching ? from + bytes / kTouching : bytes;
            std::memset(static_cast<char*>(memory) + from, 1, to - from);
        });
    for (std::thread& each : threads) each.join();
    std::printf("{\"touched_mib\": %zu, \"seconds\": %.3f}\n", bytes >> 20, seconds_since(begun));
    return 0;
}

int hold(size_t bytes) {
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, bytes));
    say_ready();
    while (std::getchar() != EOF) {
    }
    return 0;
}

class Crowd {
public:
    Crowd(size_t bytes, size_t piece)
        : pieces_(std::max(bytes / piece, kFewestPieces)), words_(bytes / pieces_.size() / sizeof(uint32_t)) {
        CHECK(cudaMalloc(&wrong_, sizeof *wrong_));
        CHECK(cudaMemset(wrong_, 0, sizeof *wrong_));
        for (uint32_t i = 0; i < pieces_.size(); ++i) {
            CHECK(cudaMalloc(&pieces_[i], words_ * sizeof(uint32_t)));
            fill<<<256, 256>>>(pieces_[i], i, words_);
        }
        CHECK(cudaDeviceSynchronize());
    }
    void pass() {
        ++passes_;
        const auto begun = Clock::now();
        for (uint32_t i = 0; i < pieces_.size(); ++i)
            pass_over<<<256, 256>>>(pieces_[i], i, words_, passes_, wrong_);
        CHECK(cudaDeviceSynchronize());
        last_ = seconds_since(begun);
        longest_ = std::max(longest_, last_);
    }
    int end(double seconds) {
        unsigned long long wrong = 0;
        CHECK(cudaMemcpy(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost));
        std::printf("{\"right\": %s, \"passes\": %u, \"seconds\": %.6f, \"longest_pass_s\": %.6f}\n",
                    wrong ? "false" : "true", passes_, seconds, longest_);
        return wrong ? 1 : 0;
    }
    uint32_t passes() const { return passes_; }
    double last() const { return last_; }

private:
    std::vector<uint32_t*> pieces_;
    const size_t words_;  // of each
    unsigned long long* wrong_ = nullptr;
    uint32_t passes_ = 0;
    double last_ = 0, longest_ = 0;
};

int work(size_t bytes, size_t piece, double seconds, uint32_t passes) {
    Crowd crowd(bytes, piece);
    say_ready();
    const auto begun = Clock::now();
    while (passes ? crowd.passes() < passes : seconds_since(begun) < seconds) crowd.pass();
    return crowd.end(seconds_since(begun));
}

int cells(size_t bytes, size_t piece) {
    Crowd crowd(bytes, piece);
    say_ready();
    const auto begun = Clock::now();
    for (int input; (input = std::getchar()) != EOF;) {
        if (input != '\n') continue;
        crowd.pass();
        std::printf("{\"cell_ms\": %.3f}\n", crowd.last() * 1e3);
        std::fflush(stdout);
    }
    return crowd.end(seconds_since(begun));
}

size_t mib_of(const char* text) { return std::strtoull(text, nullptr, 10) << 20; }

}  // namespace

int main(int count, char** arguments) {
    const std::string what = count > 1 ? arguments[1] : "";
    const size_t bytes = count > 2 ? mib_of(arguments[2]) : 0, piece = count > 3 ? mib_of(arguments[3]) : 0;
    const char* const last = count > 4 ? arguments[4] : "";
    if (what == "free") return say_free();
    if (what == "bandwidth" && bytes) return measure(bytes);
    if (what == "touch" && bytes) return touch(bytes);
    if (what == "hold" && bytes) return hold(bytes);
    if (what == "cells" && bytes && piece) return cells(bytes, piece);
    if (what == "time" && bytes && piece && *last) return work(bytes, piece, std::atof(last), 0);
    if (what == "work" && bytes && piece && std::atoi(last) > 0)
        return work(bytes, piece, 0, static_cast<uint32_t>(std::atoi(last)));
    std::fprintf(stderr,
                 "usage: bench_swap free | (bandwidth|touch|hold) MIB | cells MIB PIECE | "
                 "time MIB PIECE SECONDS | work MIB PIECE PASSES\n");
    return 2;
}
