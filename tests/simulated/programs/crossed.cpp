// crossed: a kernel behind a wait for a value, which another stream writes behind a kernel and waits for in
// turn; all of it enqueued by one thread, and behind each kernel something else.
// crossed idle: waits for the end of its input.
#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

int main(int count, char**) {
    preload::start();
    CUmodule module = nullptr;
    CUfunction add = nullptr;
    CUdeviceptr number = 0, word = 0;
    CUstream waits = nullptr, writes = nullptr;
    CUevent over = nullptr;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CHECK(cuMemAlloc(&number, 2 * sizeof(int)));
    CHECK(cuMemAlloc(&word, sizeof(int)));
    CHECK(cuMemsetD32(number, 1, 2));
    CHECK(cuMemsetD32(word, 0, 1));
    CHECK(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&writes, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&over, CU_EVENT_DISABLE_TIMING));
    CHECK(cuCtxSynchronize());
    if (count > 1) {
        preload::say("ready");
        while (std::getchar() != EOF) {
        }
        return 0;
    }
    CUdeviceptr first = number, second = number + sizeof(int);
    int one = 1;
    const auto twice = [&](CUdeviceptr at, CUstream stream) {
        void* parameters[] = {&at, &at, &at, &one};
        CHECK(cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
    };
    for (cuuint32_t round = 1; round <= 3; ++round) {
        CHECK(cuStreamWaitValue32(waits, word, round, CU_STREAM_WAIT_VALUE_GEQ));
        twice(first, waits);
        CHECK(cuEventRecord(over, waits));
        twice(second, writes);
        CHECK(cuStreamWriteValue32(writes, word, round, 0));
        CHECK(cuStreamWaitEvent(writes, over, 0));
    }
    CHECK(cuStreamSynchronize(writes));
    int found[2] = {};
    CHECK(cuMemcpyDtoH(found, number, sizeof found));
    REQUIRE(found[0] == 8 && found[1] == 8);
}
