// kinds BLOCKS SHARED_BYTES LONG_US SHORT_US ROUNDS: in each round a launch of a kernel whose blocks are
// there for LONG_US, and right behind it, on another stream, one of the same kernel and grid whose blocks are
// there for SHORT_US. Kernel and grid are the same, and a scalar argument tells the two apart. Both have a
// buffer that is another one in each round. In every other round the short one is launched first.
//
// Each round is a line: how long the short launch and the long one took from the calls to their ends, in
// microseconds of the device's clock.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "tests/preload/program.h"
#include "tests/simulated/programs/spending.h"

int main(int count, char** arguments) {
    REQUIRE(count == 6);
    const auto number = [&](int i) { return std::strtoull(arguments[i], nullptr, 10); };
    const auto blocks = static_cast<unsigned>(number(1)), shared = static_cast<unsigned>(number(2));
    uint64_t nanoseconds[2] = {1000 * number(3), 1000 * number(4)};
    preload::start();
    CUstream streams[2] = {};
    CUevent called = nullptr, over[2] = {};
    for (CUstream& each : streams) CHECK(cuStreamCreate(&each, CU_STREAM_NON_BLOCKING));
    for (CUevent* each : {&called, &over[0], &over[1]}) CHECK(cuEventCreate(each, CU_EVENT_DEFAULT));
    CUdeviceptr buffers = 0;
    CHECK(cuMemAlloc(&buffers, 256 * (number(5) + 1)));
    CUmodule module = nullptr;
    CUfunction spend = nullptr;
    const std::string image = spending::image_of({{"spend", ".param .u64 buffer, ", 500}});
    CHECK(cuModuleLoadData(&module, image.c_str()));
    CHECK(cuModuleGetFunction(&spend, module, "spend"));
    CHECK(
        cuFuncSetAttribute(spend, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared)));
    for (unsigned long long round = 0; round < number(5); ++round) {
        const size_t first = round % 2;
        CUdeviceptr buffer = buffers + 256 * round;
        CHECK(cuEventRecord(called, streams[first]));
        CHECK(cuStreamSynchronize(streams[first]));
        for (const size_t kind : {first, 1 - first}) {
            void* parameters[] = {&buffer, &nanoseconds[kind]};
            CHECK(cuLaunchKernel(spend, blocks, 1, 1, 32, 1, 1, shared, streams[kind], parameters, nullptr));
        }
        float took[2] = {};
        for (const size_t kind : {size_t{1}, size_t{0}}) {
            CHECK(cuEventRecord(over[kind], streams[kind]));
            CHECK(cuStreamSynchronize(streams[kind]));
        }
        for (const size_t kind : {size_t{0}, size_t{1}})
            CHECK(cuEventElapsedTime(&took[kind], called, over[kind]));
        std::printf("%.3f %.3f\n", 1000.0 * took[1], 1000.0 * took[0]);
    }
    CHECK(cuModuleUnload(module));
}
