// speak NUMBER: device printf.
#include <cstdlib>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

int main(int, char** arguments) {
    preload::start();
    CUmodule module = nullptr;
    CUfunction say = nullptr;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&say, module, "say"));
    int number = std::atoi(arguments[1]);
    void* parameters[] = {&number};
    CHECK(cuLaunchKernel(say, 4, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuCtxSynchronize());
}
