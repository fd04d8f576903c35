// work ROUNDS BLOCKS [PAUSE_MS]: ROUNDS times an addition through pageable memory and a kernel that spins on
// two streams, with events between them; all results are checked. Between rounds it computes for so long.
#include <time.h>

#include <cstdlib>
#include <vector>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

namespace {

constexpr unsigned kCount = 20'000;

void compute_for(long milliseconds) {
    const timespec rest{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
    nanosleep(&rest, nullptr);
}

}  // namespace

int main(int count, char** arguments) {
    REQUIRE(count >= 3);
    const int rounds = std::atoi(arguments[1]);
    const unsigned blocks = static_cast<unsigned>(std::atoi(arguments[2]));
    const long pause = count > 3 ? std::atol(arguments[3]) : 0;
    preload::start();
    CUmodule module = nullptr;
    CUfunction add = nullptr, spin = nullptr;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CHECK(cuModuleGetFunction(&spin, module, "spin"));
    CUstream first = nullptr, second = nullptr;
    CUevent ready = nullptr, start = nullptr, end = nullptr;
    CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, -1));
    CHECK(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&start, 0));
    CHECK(cuEventCreate(&end, 0));

    std::vector<unsigned> a(kCount), b(kCount), sum(kCount);
    CUdeviceptr at_a = 0, at_b = 0, at_sum = 0, counter = 0;
    for (CUdeviceptr* each : {&at_a, &at_b, &at_sum}) CHECK(cuMemAlloc(each, 4 * kCount));
    CHECK(cuMemAlloc(&counter, 4));
    CHECK(cuMemsetD32(counter, 0, 1));
    CHECK(cuStreamSynchronize(nullptr));  // with which the streams above are in no order
    for (int round = 0; round < rounds; ++round) {
        for (unsigned i = 0; i < kCount; ++i) a[i] = i * 3, b[i] = i ^ static_cast<unsigned>(round);
        CHECK(cuMemcpyHtoDAsync(at_a, a.data(), 4 * kCount, first));
        CHECK(cuMemcpyHtoDAsync(at_b, b.data(), 4 * kCount, first));
        unsigned n = kCount;
        void* of_add[] = {&at_a, &at_b, &at_sum, &n};
        CHECK(cuEventRecord(start, first));
        CHECK(cuLaunchKernel(add, (n + 127) / 128, 1, 1, 128, 1, 1, 0, first, of_add, nullptr));
        CHECK(cuEventRecord(ready, first));
        CHECK(cuStreamWaitEvent(second, ready, 0));
        unsigned spins = 50 + 10 * static_cast<unsigned>(round % 7);
        void* of_spin[] = {&spins, &counter};
        CHECK(cuLaunchKernel(spin, blocks, 1, 1, 256, 1, 1, 0, second, of_spin, nullptr));
        CHECK(cuEventRecord(end, second));
        CHECK(cuMemcpyDtoHAsync(sum.data(), at_sum, 4 * kCount, first));
        CHECK(cuStreamSynchronize(first));
        CHECK(cuStreamSynchronize(second));
        for (unsigned i = 0; i < kCount; ++i) REQUIRE(sum[i] == a[i] + b[i]);
        float milliseconds = 0;
        CHECK(cuEventElapsedTime(&milliseconds, start, end));
        REQUIRE(milliseconds > 0);
        compute_for(pause);
    }
    unsigned threads = 0;
    CHECK(cuMemcpyDtoH(&threads, counter, 4));
    REQUIRE(threads == static_cast<unsigned>(rounds) * blocks * 256);
    CHECK(cuMemFree(at_a));
    CHECK(cuStreamDestroy(first));
}
