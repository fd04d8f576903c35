// endless BLOCKS [released]: a kernel of so many blocks that wait for a word which nothing writes. It prints
// "ready" when the launch is made, then what the wait for it returns, and what further calls return. It reads
// a line before it ends. All is well if these are errors.
//
//   released   the word is in pinned memory, and is written once the wait has returned
//   stepwise   the program lets one block after the other go, so the launch takes BLOCKS tenths of a second
//   gated      likewise, all at once, when it has read a line
//   held       likewise, without a line, and "ready" does not say that the driver has the launch
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/preload/program.h"

namespace {

// Each block waits until the word is larger than its index, and adds one to the sum.
constexpr char kImage[] = R"(
.version 8.0
.target sm_90
.address_size 64

.visible .entry waits(.param .u64 word, .param .u64 sum)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [word];
    ld.param.u64 %rd1, [sum];
    mov.u32 %r0, %ctaid.x;
again:
    ld.volatile.global.u32 %r1, [%rd0];
    setp.le.u32 %p, %r1, %r0;
    @%p bra again;
    mov.u32 %r2, %tid.x;
    setp.ne.u32 %p, %r2, 0;
    @%p bra done;
    mov.u32 %r3, 1;
    red.global.add.u32 [%rd1], %r3;
done:
    ret;
}
)";

constexpr unsigned kThreads = 1024;  // two blocks a multiprocessor

void await_line() {
    char line[64];
    if (!std::fgets(line, sizeof line, stdin)) std::exit(1);
}

}  // namespace

int main(int count, char** arguments) {
    const unsigned blocks = count > 1 ? static_cast<unsigned>(std::atoi(arguments[1])) : 1;
    const std::string how = count > 2 ? arguments[2] : "";
    preload::start();
    CUmodule module = nullptr;
    CUfunction waits = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr device = 0;
    unsigned* pinned = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&waits, module, "waits"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&device, 8));
    CHECK(cuMemsetD32(device, 0, 2));
    CHECK(cuMemAllocHost(reinterpret_cast<void**>(&pinned), 64));
    std::atomic_ref<unsigned> word(*pinned);
    word = 0;
    CUdeviceptr waited = how.empty() ? device : reinterpret_cast<CUdeviceptr>(pinned), sum = device + 4;
    void* parameters[] = {&waited, &sum};
    CHECK(cuLaunchKernel(waits, blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
    if (how != "held") REQUIRE(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    preload::say("ready");
    if (how == "gated") await_line();
    for (unsigned i = 1; how == "stepwise" && i <= blocks; ++i) word = i, usleep(100'000);
    if (how == "gated" || how == "held") word = blocks;
    preload::say(preload::name_of(cuStreamSynchronize(stream)));
    if (how == "stepwise" || how == "gated" || how == "held") {
        unsigned found = 0;
        CHECK(cuMemcpyDtoH(&found, sum, 4));
        REQUIRE(found == blocks);
    } else {
        CUdeviceptr more = 0;
        REQUIRE(cuMemAlloc(&more, 8) == CUDA_ERROR_LAUNCH_TIMEOUT);
        REQUIRE(cuCtxSynchronize() == CUDA_ERROR_LAUNCH_TIMEOUT);
        REQUIRE(cuStreamQuery(stream) == CUDA_ERROR_LAUNCH_TIMEOUT);
        word = blocks;
    }
    preload::say("over");
    await_line();
}
