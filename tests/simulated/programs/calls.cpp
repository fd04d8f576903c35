// calls ROUNDS: makes calls in numbers that commands.py knows, for `smt bench calls`. In each round a memset,
// two launches, an event and a wait; all rounds on one thread.
#include <cstdlib>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

int main(int count, char** arguments) {
    REQUIRE(count == 2);
    const int rounds = std::atoi(arguments[1]);
    preload::start();
    CUmodule module = nullptr;
    CUfunction spin = nullptr;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUdeviceptr counter = 0;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&spin, module, "spin"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuMemAlloc(&counter, 4));
    unsigned spins = 1;
    void* parameters[] = {&spins, &counter};
    for (int round = 0; round < rounds; ++round) {
        CHECK(cuMemsetD32Async(counter, 0, 1, stream));
        for (int launch = 0; launch < 2; ++launch)
            CHECK(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
        CHECK(cuEventRecord(event, stream));
        CHECK(cuStreamSynchronize(stream));
    }
    unsigned threads = 0;
    CHECK(cuMemcpyDtoH(&threads, counter, 4));
    REQUIRE(threads == 2 * 32);
    std::puts("calls made");
}
