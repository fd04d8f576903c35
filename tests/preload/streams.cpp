// Two streams, ordered by an event: one fills, the other sums and copies into pinned memory.
#include "tests/preload/program.h"

constexpr int kNumbers = 1 << 14;
constexpr int kRounds = 8;
constexpr char kImage[] = "FAKE\nkernel fill params 8,4,4\nkernel sum params 8,4,8\n";

int main() {
    preload::start();
    CUmodule module = nullptr;
    CUfunction fill = nullptr, sum = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&fill, module, "fill"));
    CHECK(cuModuleGetFunction(&sum, module, "sum"));
    CUstream filling = nullptr, summing = nullptr;
    CUevent filled = nullptr, summed = nullptr;
    CHECK(cuStreamCreate(&filling, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&summing, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&filled, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&summed, CU_EVENT_DISABLE_TIMING));
    CUdeviceptr numbers = 0, total = 0;
    CHECK(cuMemAlloc(&numbers, kNumbers * sizeof(int)));
    CHECK(cuMemAlloc(&total, sizeof(long long)));
    void* pinned = nullptr;
    CHECK(cuMemHostAlloc(&pinned, kRounds * sizeof(long long), 0));
    auto* totals = static_cast<long long*>(pinned);

    int count = kNumbers;
    for (int round = 0; round < kRounds; ++round) {
        void* fill_parameters[] = {&numbers, &round, &count};
        void* sum_parameters[] = {&numbers, &count, &total};
        CHECK(cuStreamWaitEvent(filling, summed, 0));  // the first time it was never recorded: no wait
        CHECK(cuLaunchKernel(fill, kNumbers / 128, 1, 1, 128, 1, 1, 0, filling, fill_parameters, nullptr));
        CHECK(cuEventRecord(filled, filling));
        CHECK(cuStreamWaitEvent(summing, filled, 0));
        CHECK(cuLaunchKernel(sum, 1, 1, 1, 64, 2, 2, 1024, summing, sum_parameters, nullptr));
        CHECK(cuMemcpyDtoHAsync(totals + round, total, sizeof(long long), summing));
        CHECK(cuEventRecord(summed, summing));
    }
    CHECK(cuEventSynchronize(summed));
    CHECK(cuStreamSynchronize(filling));
    for (int round = 0; round < kRounds; ++round)
        REQUIRE(totals[round] == static_cast<long long>(round) * kNumbers);

    CHECK(cuMemFreeHost(pinned));
    CHECK(cuMemFree(numbers));
    CHECK(cuMemFree(total));
    CHECK(cuEventDestroy(filled));
    CHECK(cuEventDestroy(summed));
    CHECK(cuStreamDestroy(filling));
    CHECK(cuStreamDestroy(summing));
    CHECK(cuModuleUnload(module));
    std::printf("%d sums over two streams: right\n", kRounds);
}
