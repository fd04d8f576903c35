// load BLOCKS SHARED_BYTES BLOCK_US LAUNCHES FOR_US [PAUSE_US [LATE_US]]: launches one after the other of a
// kernel whose blocks are there for so long and do nothing, LAUNCHES times or for so many microseconds of the
// device's clock, whichever is over first. So much time of a device costs the host that simulates it nothing.
// With PAUSE_US it copies memory for so long before each launch: that takes time of the device's clock, and
// no multiprocessor.
//
// Each launch is a line: the microseconds of the device's clock from the program's beginning until the call
// and until its end. With LATE_US the kernel is loaded only after so much time, and that is the first line.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "tests/preload/program.h"
#include "tests/simulated/programs/spending.h"

namespace {

constexpr size_t kCopied = 256 << 10;

double since(CUevent begun, CUevent now) {
    float milliseconds = 0;
    CHECK(cuEventElapsedTime(&milliseconds, begun, now));
    return 1000.0 * milliseconds;
}

}  // namespace

int main(int count, char** arguments) {
    REQUIRE(count >= 6 && count <= 8);
    const auto number = [&](int i) { return i < count ? std::strtoull(arguments[i], nullptr, 10) : 0; };
    const auto blocks = static_cast<unsigned>(number(1)), shared = static_cast<unsigned>(number(2));
    uint64_t nanoseconds = 1000 * number(3);
    preload::start();
    CUstream stream = nullptr;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUevent begun = nullptr, called = nullptr, over = nullptr;
    for (CUevent* each : {&begun, &called, &over}) CHECK(cuEventCreate(each, CU_EVENT_DEFAULT));
    void* here = nullptr;
    CUdeviceptr there = 0;
    CHECK(cuMemAllocHost(&here, kCopied));
    CHECK(cuMemAlloc(&there, kCopied));
    CHECK(cuEventRecord(begun, stream));
    double end = 0;
    // Time passes, and no multiprocessor is taken.
    const auto copy_for = [&](uint64_t microseconds) {
        for (double now = end; now < end + static_cast<double>(microseconds); now = since(begun, called)) {
            CHECK(cuMemcpyHtoDAsync(there, here, kCopied, stream));
            CHECK(cuEventRecord(called, stream));
            CHECK(cuStreamSynchronize(stream));
        }
    };
    copy_for(number(7));
    CUmodule module = nullptr;
    CUfunction spend = nullptr;
    const std::string image = spending::image_of({{"spend", "", 500}});
    CHECK(cuModuleLoadData(&module, image.c_str()));
    CHECK(cuModuleGetFunction(&spend, module, "spend"));
    CHECK(
        cuFuncSetAttribute(spend, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared)));
    if (number(7)) {
        CHECK(cuEventRecord(over, stream));
        CHECK(cuStreamSynchronize(stream));
        end = since(begun, over);
        std::printf("%.3f %.3f\n", since(begun, called), end);
    }
    for (unsigned long long i = 0; i < number(4) && end < static_cast<double>(number(5)); ++i) {
        copy_for(number(6));
        CHECK(cuEventRecord(called, stream));
        void* parameters[] = {&nanoseconds};
        CHECK(cuLaunchKernel(spend, blocks, 1, 1, 32, 1, 1, shared, stream, parameters, nullptr));
        CHECK(cuEventRecord(over, stream));
        CHECK(cuStreamSynchronize(stream));
        end = since(begun, over);
        std::printf("%.3f %.3f\n", since(begun, called), end);
    }
    CHECK(cuModuleUnload(module));
}
