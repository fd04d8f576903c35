// leaves WHAT: waits to be killed with work in flight that would go on for ever, or nearly.
//   waits      a stream waits for a value that nothing writes
//   endless    a kernel that does not end
//   launches   launches of thousands of times more blocks than the device has places
//   stoppable  the same with short blocks and nothing behind them, so that they are soon stopped between two
#include <unistd.h>

#include <cstring>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

int main(int, char** arguments) {
    preload::start();
    CUmodule module = nullptr;
    CUfunction spin = nullptr;
    CUdeviceptr counter = 0;
    CUstream stream = nullptr;
    unsigned spins = 1000;
    void* parameters[] = {&spins, &counter};
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&spin, module, "spin"));
    CHECK(cuMemAlloc(&counter, 4));
    CHECK(cuMemsetD32(counter, 0, 1));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    const bool waits = std::strcmp(arguments[1], "waits") == 0;
    if (waits) CHECK(cuStreamWaitValue32(stream, counter, 1, CU_STREAM_WAIT_VALUE_EQ));
    const bool stoppable = std::strcmp(arguments[1], "stoppable") == 0;
    if (stoppable) spins = 50;
    const bool endless = std::strcmp(arguments[1], "endless") == 0;
    if (endless) {
        CHECK(cuModuleGetFunction(&spin, module, "endless"));
        CHECK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    }
    for (int i = 0; !waits && !endless && i < 3; ++i)
        CHECK(cuLaunchKernel(spin, 1u << 22, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr));
    // So that the launches have something behind them.
    if (!stoppable) CHECK(cuMemsetD32Async(counter, 0, 1, stream));
    if (!waits) REQUIRE(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    preload::say("ready");
    pause();
}
