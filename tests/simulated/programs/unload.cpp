// Three threads load a module, launch its kernel on a stream of their own, and unload the module while that
// is under way: to unload waits for it, so every launch counts.
#include <thread>
#include <vector>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

namespace {

constexpr int kThreads = 3, kRounds = 3, kLaunches = 4;
constexpr unsigned kBlocks = 40, kBlockThreads = 32;

void come_and_go(CUcontext context, CUdeviceptr counter) {
    CUstream stream = nullptr;
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int round = 0; round < kRounds; ++round) {
        CUmodule module = nullptr;
        CUfunction spin = nullptr;
        CHECK(cuModuleLoadData(&module, kKernels));
        CHECK(cuModuleGetFunction(&spin, module, "spin"));
        unsigned rounds = 30;
        void* parameters[] = {&rounds, &counter};
        for (int i = 0; i < kLaunches; ++i)
            CHECK(cuLaunchKernel(spin, kBlocks, 1, 1, kBlockThreads, 1, 1, 0, stream, parameters, nullptr));
        CHECK(cuModuleUnload(module));
    }
    CHECK(cuStreamSynchronize(stream));
}

}  // namespace

int main() {
    CUcontext context = preload::start();
    CUdeviceptr counter = 0;
    unsigned counted = 0;
    CHECK(cuMemAlloc(&counter, 4));
    CHECK(cuMemsetD32(counter, 0, 1));
    CHECK(cuCtxSynchronize());
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(come_and_go, context, counter);
    for (std::thread& each : threads) each.join();
    CHECK(cuMemcpyDtoH(&counted, counter, 4));
    REQUIRE(counted == kThreads * kRounds * kLaunches * kBlocks * kBlockThreads);
}
