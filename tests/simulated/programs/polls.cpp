// Never waits: asks for the end of its work again and again. And a host function between kernels.
#include <atomic>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

int main() {
    preload::start();
    CUmodule module = nullptr;
    CUfunction spin = nullptr;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&spin, module, "spin"));
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CUdeviceptr counter = 0;
    CHECK(cuMemAlloc(&counter, 4));
    CHECK(cuMemsetD32(counter, 0, 1));
    CHECK(cuCtxSynchronize());
    unsigned spins = 100;
    void* parameters[] = {&spins, &counter};
    std::atomic<int> called{0};  // what orders the two threads across the server no sanitizer sees
    CHECK(cuLaunchKernel(spin, 4, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr));
    CHECK(cuLaunchHostFunc(stream, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &called));
    CHECK(cuLaunchKernel(spin, 4, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr));
    CHECK(cuEventRecord(event, stream));
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
    }
    REQUIRE(called == 1);
    CHECK(cuLaunchKernel(spin, 4, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr));
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
    }
    unsigned threads = 0;
    CHECK(cuMemcpyDtoH(&threads, counter, 4));
    REQUIRE(threads == 3 * 4 * 64);
}
