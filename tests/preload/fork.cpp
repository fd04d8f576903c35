// A child of fork() has no CUDA, as with the real driver, and does its parent no harm: not by its
// calls, and not by its end.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/preload/program.h"

constexpr int kNumbers = 1000;
constexpr char kImage[] = "FAKE\nkernel fill params 8,4,4\n";

// 0: every call failed as it must.
int child(CUdeviceptr memory) {
    CUdeviceptr more = 0;
    int number = 0;
    if (cuInit(0) != CUDA_ERROR_NOT_INITIALIZED) return 1;
    if (cuMemAlloc(&more, 64) != CUDA_ERROR_NOT_INITIALIZED) return 2;
    if (cuMemcpyDtoH(&number, memory, sizeof number) != CUDA_ERROR_NOT_INITIALIZED) return 3;
    if (cuCtxSynchronize() != CUDA_ERROR_NOT_INITIALIZED) return 4;
    return 0;
}

int main() {
    preload::start();
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    CUdeviceptr memory = 0;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&fill, module, "fill"));
    CHECK(cuMemAlloc(&memory, kNumbers * sizeof(int)));
    for (int round = 0; round < 3; ++round) {
        int count = kNumbers, numbers[kNumbers], status = -1;
        void* parameters[] = {&memory, &round, &count};
        CHECK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
        const pid_t forked = fork();
        if (forked == 0) _exit(child(memory));
        REQUIRE(waitpid(forked, &status, 0) == forked);
        if (status != 0) std::fprintf(stderr, "the child's status: %x\n", status);
        REQUIRE(status == 0);
        CHECK(cuMemcpyDtoH(numbers, memory, sizeof numbers));
        for (int number : numbers) REQUIRE(number == round);
    }
    CHECK(cuMemFree(memory));
    CHECK(cuModuleUnload(module));
}
