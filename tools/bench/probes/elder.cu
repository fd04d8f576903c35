// Two kernels on the same multiprocessors: how much does each get, and does it matter which came first?
//
//     nvcc -std=c++20 -O2 -arch=sm_90 -o elder elder.cu -lcuda && ./elder
//
// Two streams, each with a kernel that takes half of every multiprocessor's threads and goes through a fixed
// number of rounds of the same work; each is launched again when it is over. The second comes when the first
// is half way, so each of them is the elder for some time and the younger for some. One JSON row a pair of
// kinds of work: rounds in a ms of each, while it is alone, the elder, or the younger; and how long their
// launches take.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "probe.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kThreads = 256, kCtas = 4, kMostRounds = 512, kRuns = 24;
constexpr size_t kElements = size_t{1} << 26;

enum class Kind { kFma, kSfu, kL2, kMemory };
const char* name_of(Kind kind) {
    const char* const names[] = {"fma", "sfu", "l2", "memory"};
    return names[static_cast<int>(kind)];
}

// `times`: of the first CTA on multiprocessor 0, when it began, and the end of each round.
__global__ void __launch_bounds__(kThreads)
    work(Kind kind, int rounds, int steps, const float4* data, size_t mask, float* sink,
         unsigned long long* times, unsigned* first) {
    __shared__ bool tells;
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0) tells = sm == 0 && atomicExch(first, 1u) == 0;
    __syncthreads();
    const bool says = tells && threadIdx.x == 0;
    if (says) times[0] = now();
    float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
    size_t at = (size_t{blockIdx.x} * kThreads + threadIdx.x) & mask;
    const size_t stride = size_t{gridDim.x} * kThreads;
    for (int round = 0; round < rounds; ++round) {
        if (kind == Kind::kFma) {
            for (int i = 0; i < steps; ++i)
                a = fmaf(a, 0.999f, 1), b = fmaf(b, 0.999f, 2), c = fmaf(c, 0.999f, 3),
                d = fmaf(d, 0.999f, 4);
        } else if (kind == Kind::kSfu) {
            for (int i = 0; i < steps; ++i) a += __sinf(a), b += __sinf(b);
        } else {
            for (int i = 0; i < steps; ++i, at = (at + stride) & mask) {
                const float4 value = __ldcg(data + at);
                a += value.x, b += value.y, c += value.z, d += value.w;
            }
        }
        __syncthreads();
        if (says) times[1 + round] = now();
    }
    if (a + b + c + d == 1.25f) *sink = a;
}

struct Side {
    Side() {
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&over, cudaEventDisableTiming));
        CHECK(cudaMallocManaged(&times, kRuns * (kMostRounds + 1) * sizeof *times));
        CHECK(cudaMalloc(&data, kElements * sizeof *data));
        CHECK(cudaMemset(data, 0, kElements * sizeof *data));
        CHECK(cudaMalloc(&first, kRuns * sizeof *first));
        CHECK(cudaMalloc(&sink, sizeof *sink));
        cudaDeviceProp properties;
        CHECK(cudaGetDeviceProperties(&properties, 0));
        grid = properties.multiProcessorCount * kCtas;
    }
    void clear() {
        CHECK(cudaDeviceSynchronize());
        std::fill_n(times, kRuns * (kMostRounds + 1), 0);
        CHECK(cudaMemset(first, 0, kRuns * sizeof *first));
        CHECK(cudaDeviceSynchronize());
        run = 0;
    }
    void start() {
        const size_t mask = (kind == Kind::kL2 ? size_t{1} << 20 : kElements) - 1;
        work<<<grid, kThreads, 0, stream>>>(kind, rounds, steps, data, mask, sink,
                                            times + run * (kMostRounds + 1), first + run);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(over, stream));
        ++run;
    }
    bool done() { return cudaEventQuery(over) == cudaSuccess; }
    unsigned long long begin(int i) const { return times[size_t(i) * (kMostRounds + 1)]; }
    unsigned long long end(int i) const { return times[size_t(i) * (kMostRounds + 1) + rounds]; }
    // Rounds done at that moment of a launch, with parts of one.
    double at(int i, double ns) const {
        const unsigned long long* const each = times + size_t(i) * (kMostRounds + 1);
        int round = 0;
        while (round < rounds && each[round + 1] <= ns) ++round;
        if (round == rounds) return rounds;
        return ns <= each[round] ? round : round + (ns - each[round]) / double(each[round + 1] - each[round]);
    }

    Kind kind = Kind::kFma;
    int rounds = 64, steps = 1, run = 0, grid = 0;
    cudaStream_t stream;
    cudaEvent_t over;
    unsigned long long* times;
    float4* data;
    unsigned* first;
    float* sink;
};

double alone_ms(Side& side) {
    side.clear();
    for (int i = 0; i < 3; ++i) {
        side.start();
        CHECK(cudaStreamSynchronize(side.stream));
    }
    CHECK(cudaDeviceSynchronize());
    return (side.end(2) - side.begin(2)) / 1e6;
}

void calibrate(Side& side, Kind kind, double ms) {
    side.kind = kind, side.rounds = 64, side.steps = 64;
    side.steps = std::max(1, static_cast<int>(64 * ms / alone_ms(side)));
}

void pair(Side& one, Side& other, Kind kind_one, Kind kind_other, double ms_one, double ms_other) {
    calibrate(one, kind_one, ms_one), calibrate(other, kind_other, ms_other);
    const double alone[] = {alone_ms(one), alone_ms(other)};
    one.clear(), other.clear();
    one.start();
    for (const auto until = Clock::now() + std::chrono::microseconds(static_cast<int>(500 * ms_one));
         Clock::now() < until;) {
    }
    other.start();
    Side* const sides[] = {&one, &other};
    while (one.run < kRuns && other.run < kRuns) {
        for (Side* side : sides) {
            if (side->run < kRuns && side->done()) side->start();
        }
    }
    CHECK(cudaDeviceSynchronize());
    std::printf("{\"kinds\": [\"%s\", \"%s\"], \"alone_ms\": [%.3f, %.3f]", name_of(kind_one),
                name_of(kind_other), alone[0], alone[1]);
    for (int which = 0; which < 2; ++which) {
        const Side &mine = *sides[which], &theirs = *sides[1 - which];
        std::vector<double> took, elder, younger;
        for (int i = 1; i + 2 < mine.run; ++i) {
            took.push_back((mine.end(i) - mine.begin(i)) / 1e6);
            for (int j = 0; j + 1 < theirs.run; ++j) {
                const double from = std::max(mine.begin(i), theirs.begin(j)),
                             to = std::min(mine.end(i), theirs.end(j));
                if (to - from < 2e5) continue;
                const double rate =
                    (mine.at(i, to) - mine.at(i, from)) / ((to - from) / 1e6) / (mine.rounds / alone[which]);
                (mine.begin(i) < theirs.begin(j) ? elder : younger).push_back(rate);
            }
        }
        std::printf(
            ", \"%s\": {\"launches\": %zu, \"took_ms\": %.3f, \"of_alone_as_elder\": %.3f, "
            "\"of_alone_as_younger\": %.3f}",
            which ? "second" : "first", took.size(), median(took), median(elder), median(younger));
    }
    std::printf("}\n");
}

}  // namespace

int main() {
    Side one, other;
    const Kind kinds[] = {Kind::kFma, Kind::kSfu, Kind::kL2, Kind::kMemory};
    for (int i = 0; i < 4; ++i) {
        for (int j = i; j < 4; ++j)
            pair(one, other, kinds[i], kinds[j], 5, 8), pair(one, other, kinds[i], kinds[j], 8, 3);
    }
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    std::printf("{\"device\": \"%s\"}\n", properties.name);
}
