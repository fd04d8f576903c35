// line large|small|together: head-of-line blocking between two programs. The large one launches a kernel of
// many blocks, the small one a single warp; each waits and prints nothing. `small urgent` asks with priority.
// `together` launches cooperatively what eight multiprocessors just hold.
#include <cstring>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

int main(int count, char** arguments) {
    const bool together = std::strcmp(arguments[1], "together") == 0;
    const bool large = together || std::strcmp(arguments[1], "large") == 0;
    const bool urgent = count > 2 && std::strcmp(arguments[2], "urgent") == 0;
    preload::start();
    CUmodule module = nullptr;
    CUfunction spin = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr counter = 0;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&spin, module, "spin"));
    CHECK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, urgent ? -5 : 0));
    CHECK(cuMemAlloc(&counter, 4));
    unsigned spins = large ? 100 : 10;
    void* parameters[] = {&spins, &counter};
    if (together) {
        CHECK(cuMemsetD32(counter, 0, 1));
        CHECK(cuLaunchCooperativeKernel(spin, 16, 1, 1, 1024, 1, 1, 0, stream, parameters));
        CHECK(cuStreamSynchronize(stream));
        unsigned threads = 0;
        CHECK(cuMemcpyDtoH(&threads, counter, 4));
        REQUIRE(threads == 16 * 1024);
        return 0;
    }
    CHECK(
        cuLaunchKernel(spin, large ? 64 : 1, 1, 1, large ? 1024 : 32, 1, 1, 0, stream, parameters, nullptr));
    CHECK(cuStreamSynchronize(stream));
}
