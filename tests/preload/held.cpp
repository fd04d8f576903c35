// held launch|copy: has a kernel run that ends when the test opens gate 1. Then it waits for it, or is
// in the middle of a large copy behind it. Says "launched", and which error ended that, if one did.
#include <cstring>
#include <vector>

#include "tests/preload/program.h"

constexpr size_t kBytes = 32u << 20;  // more than a lane's staging slots take
constexpr char kImage[] = "FAKE\nkernel gate params 4\n";

CUresult stay(const char* how, CUdeviceptr memory) {
    if (std::strcmp(how, "copy") != 0) return cuCtxSynchronize();
    const std::vector<char> data(kBytes, 1);
    return cuMemcpyHtoD(memory, data.data(), kBytes);
}

int main(int, char** arguments) {
    preload::start();
    CUmodule module = nullptr;
    CUfunction gate = nullptr;
    CUdeviceptr memory = 0;
    void* pinned = nullptr;
    int number = 1;
    void* parameters[] = {&number};
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&gate, module, "gate"));
    CHECK(cuMemAlloc(&memory, kBytes));
    CHECK(cuMemHostAlloc(&pinned, kBytes, 0));
    CHECK(cuLaunchKernel(gate, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    preload::say("launched");
    const CUresult status = stay(arguments[1], memory);
    std::printf("error %d\n", static_cast<int>(status));
    if (status != CUDA_SUCCESS) {  // for good, and nothing hangs
        REQUIRE(cuCtxSynchronize() == status);
        REQUIRE(cuMemFree(memory) == status);
        return 0;
    }
    CHECK(cuMemFree(memory));
    CHECK(cuMemFreeHost(pinned));
}
