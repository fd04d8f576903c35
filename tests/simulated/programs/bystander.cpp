// bystander: launches, waits, says "ready", and reads a line. Then it prints the error that its calls return.
#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

int main() {
    preload::start();
    CUmodule module = nullptr;
    CUfunction tick = nullptr;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&tick, module, "tick"));
    CHECK(cuLaunchKernel(tick, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    CHECK(cuCtxSynchronize());
    preload::say("ready");
    std::getchar();
    CUdeviceptr memory = 0;
    const CUresult status = cuMemAlloc(&memory, 64);
    std::puts(preload::name_of(status));
    REQUIRE(cuLaunchKernel(tick, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == status);
    REQUIRE(cuCtxSynchronize() == status);
}
