// fault cause: a kernel with an illegal address. fault suffer: says "ready", waits for the error of
// another program's, says which, and stays until its input ends.
#include <cstring>

#include "tests/preload/program.h"

constexpr char kImage[] = "FAKE\nkernel fault\n";

int main(int, char** arguments) {
    preload::start();
    CUmodule module = nullptr;
    CUfunction fault = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&fault, module, "fault"));
    const bool causes = std::strcmp(arguments[1], "cause") == 0;
    if (causes) CHECK(cuLaunchKernel(fault, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    if (!causes) std::puts("ready"), std::fflush(stdout);
    CUresult status = CUDA_SUCCESS;
    while (status == CUDA_SUCCESS) status = cuCtxSynchronize();
    std::printf("error %d\n", static_cast<int>(status));
    std::fflush(stdout);
    CUdeviceptr memory = 0;
    REQUIRE(cuMemAlloc(&memory, 64) == status);  // for good
    while (!causes && std::getchar() != EOF) {
    }
}
