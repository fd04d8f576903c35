// brief LAUNCHES BLOCKS: so many short kernels of so many blocks on a stream; answers "launched". For a line
// it waits for the stream, and answers "ended".
//
// brief endless BLOCKS: one thread launches them for as long as another one waits for the stream. Natively
// that one waits for what was launched before it began to, and so it must here, or neither ever ends.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "tests/preload/program.h"

namespace {

constexpr char kShort[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry brief()
{
    .reg .b32 %r<2>;
    mov.u32 %r0, %ctaid.x;
    nanosleep.u32 1000;
    ret;
}
)";

}  // namespace

int main(int count, char** arguments) {
    REQUIRE(count == 3);
    const std::string word = arguments[1];
    const auto blocks = static_cast<unsigned>(std::atoi(arguments[2]));
    const int wanted = word == "endless" ? 0 : std::atoi(word.c_str());  // 0: no end
    preload::start();
    CUmodule module = nullptr;
    CUfunction brief = nullptr;
    CUstream stream = nullptr;
    CUcontext context = nullptr;
    CHECK(cuModuleLoadData(&module, kShort));
    CHECK(cuModuleGetFunction(&brief, module, "brief"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuCtxGetCurrent(&context));
    std::atomic<bool> waited{false};
    std::atomic<int> launched{0};
    std::thread launches([&] {
        CHECK(cuCtxSetCurrent(context));
        while (wanted ? launched.load() < wanted : !waited.load()) {
            CHECK(cuLaunchKernel(brief, blocks, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
            launched.fetch_add(1);
        }
    });
    while (launched.load() < std::max(1, wanted)) std::this_thread::yield();
    preload::say("launched");
    std::string line;
    std::getline(std::cin, line);
    CHECK(cuStreamSynchronize(stream));
    waited.store(true);
    launches.join();
    CHECK(cuStreamSynchronize(stream));
    std::printf("ended\n");
    CHECK(cuModuleUnload(module));
}
