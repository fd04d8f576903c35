// printed HOW: has printed, and something of it does not end before the test opens gate 1. after: that is a
// kernel which prints nothing, behind what printed. itself: it is a kernel that may print.
#include <cstring>

#include "tests/preload/program.h"

constexpr char kPrints[] = "FAKE\nkernel say params 4\nkernel gate params 4\nvprintf\n";
constexpr char kSilent[] = "FAKE\nkernel gate params 4\n";

int main(int, char** arguments) {
    preload::start();
    CUmodule prints = nullptr, silent = nullptr;
    CUfunction say = nullptr, gate = nullptr;
    CUstream stream = nullptr;
    int number = 1;
    void* parameters[] = {&number};
    CHECK(cuModuleLoadData(&prints, kPrints));
    CHECK(cuModuleLoadData(&silent, kSilent));
    CHECK(cuModuleGetFunction(&say, prints, "say"));
    CHECK(cuModuleGetFunction(&gate, std::strcmp(arguments[1], "itself") == 0 ? prints : silent, "gate"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuLaunchKernel(say, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
    CHECK(cuLaunchKernel(gate, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
    CHECK(cuStreamSynchronize(stream));
}
