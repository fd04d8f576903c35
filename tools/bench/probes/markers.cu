// What does it cost to see how far a stream has come? A mark behind every few kernels: a word that the GPU
// writes, an event without a time, a small memset.
//
//     nvcc -std=c++20 -O2 -arch=sm_90 -o markers markers.cu -lcuda && ./markers
//
// One JSON row for each mark and length of kernels: what a mark adds to the GPU's time, in us. Then the
// host's: of a record, a write, and of asking for an event that is over or not.
#include <cuda.h>

#include <chrono>
#include <functional>

#include "probe.h"

namespace {

constexpr int kKernels = 768, kRounds = 5, kCalls = 500, kQuestions = 50'000;

__global__ void work(int iterations, float* out) {
    float value = threadIdx.x;
    for (int i = 0; i < iterations; ++i) value = value * 1.0001f + 0.5f;
    if (value == 12345.f) *out = value;
}

struct Mark {
    const char* name;
    int every;
    std::function<void()> make;
};

double host_us(int times, const std::function<void()>& what) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) what();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
           times;
}

}  // namespace

int main() {
    CHECK(cudaFree(nullptr));
    CUstream stream;
    void* host = nullptr;
    CUdeviceptr word = 0, memory = 0;
    CUevent event, begin, end;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    CHECK(cuMemHostGetDevicePointer(&word, host, 0));
    CHECK(cuMemAlloc(&memory, 4096));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&begin, 0));
    CHECK(cuEventCreate(&end, 0));
    const auto write = [&] { CHECK(cuStreamWriteValue64(stream, word, 1, 0)); };
    const auto record = [&] { CHECK(cuEventRecord(event, stream)); };
    const auto clear = [&] { CHECK(cuMemsetD8Async(memory, 0, 64, stream)); };
    const Mark marks[] = {{"none", 0, [] {}},    {"write", 16, write}, {"write", 4, write},
                          {"event", 16, record}, {"event", 4, record}, {"memset", 16, clear}};
    for (const int iterations : {200, 2000, 8000}) {
        double alone = 0;
        for (const Mark& mark : marks) {
            std::vector<double> times;
            for (int round = 0; round < kRounds; ++round) {
                work<<<1, 32, 0, stream>>>(6'000'000, nullptr);  // until all is enqueued
                CHECK(cuEventRecord(begin, stream));
                for (int i = 1; i <= kKernels; ++i) {
                    work<<<528, 128, 0, stream>>>(iterations, nullptr);
                    if (mark.every && i % mark.every == 0) mark.make();
                }
                CHECK(cuEventRecord(end, stream));
                CHECK(cuStreamSynchronize(stream));
                float ms = 0;
                CHECK(cuEventElapsedTime(&ms, begin, end));
                times.push_back(ms * 1e3);
            }
            const double us = median(times);
            if (!mark.every) alone = us;
            std::printf("{\"mark\": \"%s\", \"every\": %d, \"kernel_us\": %.2f, \"mark_us\": %.2f}\n",
                        mark.name, mark.every, us / kKernels,
                        mark.every ? (us - alone) / (kKernels / mark.every) : 0.0);
        }
    }
    const double record_us = host_us(kCalls, record);
    CHECK(cuStreamSynchronize(stream));
    const double write_us = host_us(kCalls, write);
    CHECK(cuStreamSynchronize(stream));
    const double over_us = host_us(kQuestions, [&] { cuEventQuery(event); });
    work<<<1, 32, 0, stream>>>(20'000'000, nullptr);
    record();
    const double not_over_us = host_us(kQuestions, [&] { cuEventQuery(event); });
    CHECK(cuStreamSynchronize(stream));
    std::printf("{\"host_us\": {\"record\": %.3f, \"write\": %.3f, \"over\": %.3f, \"not_over\": %.3f}}\n",
                record_us, write_us, over_us, not_over_us);
}
