// say NUMBER TIMES: a kernel that prints. The name vprintf in an image is how smt knows that it may.
#include <cstdlib>

#include "tests/preload/program.h"

constexpr char kImage[] = "FAKE\nkernel say params 4\nvprintf\n";

int main(int, char** arguments) {
    preload::start();
    CUmodule module = nullptr;
    CUfunction say = nullptr;
    int number = std::atoi(arguments[1]);
    void* parameters[] = {&number};
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&say, module, "say"));
    for (int i = 0; i < std::atoi(arguments[2]); ++i) {
        CHECK(cuLaunchKernel(say, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
        if (i % 3 == 0) CHECK(cuCtxSynchronize());
    }
    CHECK(cuCtxSynchronize());
}
