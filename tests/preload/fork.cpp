// A child of fork() has no CUDA if its parent had used it, as with the real driver, and does its parent no
// harm: not by its calls, and not by its end. One that was forked before is a program like any other.
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

// Forked before any call. Its end takes nothing from its parent, which calls later.
void early_child() {
    const pid_t forked = fork();
    if (forked == 0) {
        CUdeviceptr memory = 0;
        int numbers[2] = {7, 8}, back[2] = {};
        preload::start();
        CHECK(cuMemAlloc(&memory, sizeof numbers));
        CHECK(cuMemcpyHtoD(memory, numbers, sizeof numbers));
        CHECK(cuMemcpyDtoH(back, memory, sizeof back));
        _exit(back[0] == 7 && back[1] == 8 ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(forked, &status, 0) == forked);
    REQUIRE(status == 0);
}

int main() {
    early_child();
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
