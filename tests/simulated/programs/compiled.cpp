// compiled IMAGE: loads a file that nvcc made of compiled.cu, runs its kernels and checks what they do.
// compiled IMAGE refused: the image has nothing for this device.
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/preload/program.h"

namespace {

CUfunction function(CUmodule module, const char* name) {
    CUfunction function = nullptr;
    CHECK(cuModuleGetFunction(&function, module, name));
    return function;
}

void reduce(CUmodule module) {
    constexpr int kCount = 10'000;
    std::vector<float> values(kCount);
    const float weights[4] = {1, 2, 0.5f, -1};
    double expected = 0;
    for (int i = 0; i < kCount; ++i) {
        values[static_cast<size_t>(i)] = static_cast<float>(i % 32);
        expected += values[static_cast<size_t>(i)] * weights[i % 4];
    }
    CUdeviceptr at_weights = 0, from = 0, to = 0, rounds = 0;
    size_t bytes = 0;
    CHECK(cuModuleGetGlobal(&at_weights, &bytes, module, "weights"));
    REQUIRE(bytes == sizeof weights);
    CHECK(cuMemcpyHtoD(at_weights, weights, sizeof weights));
    CHECK(cuMemAlloc(&from, sizeof(float) * kCount));
    CHECK(cuMemAlloc(&to, sizeof(float)));
    CHECK(cuMemcpyHtoD(from, values.data(), sizeof(float) * kCount));
    CHECK(cuMemsetD32(to, 0, 1));
    int count = kCount;
    void* parameters[] = {&from, &to, &count};
    CHECK(cuLaunchKernel(function(module, "reduce"), (kCount + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr,
                         parameters, nullptr));
    float sum = 0;
    unsigned seen = 0;
    CHECK(cuMemcpyDtoH(&sum, to, sizeof sum));
    REQUIRE(std::fabs(sum - expected) < 1);
    CHECK(cuModuleGetGlobal(&rounds, nullptr, module, "rounds"));
    CHECK(cuMemcpyDtoH(&seen, rounds, sizeof seen));
    REQUIRE(seen == 1);
}

void reverse(CUmodule module) {
    constexpr unsigned kThreads = 192;
    int data[kThreads];
    for (unsigned i = 0; i < kThreads; ++i) data[i] = static_cast<int>(i);
    CUdeviceptr at = 0;
    CHECK(cuMemAlloc(&at, sizeof data));
    CHECK(cuMemcpyHtoD(at, data, sizeof data));
    void* parameters[] = {&at};
    CUfunction kernel = function(module, "reverse");
    CHECK(cuLaunchKernel(kernel, 1, 1, 1, kThreads, 1, 1, sizeof data, nullptr, parameters, nullptr));
    CHECK(cuMemcpyDtoH(data, at, sizeof data));
    for (unsigned i = 0; i < kThreads; ++i) REQUIRE(data[i] == static_cast<int>(kThreads - 1 - i));
    // More than the default of 48 KiB only on request.
    FAILS(cuLaunchKernel(kernel, 1, 1, 1, kThreads, 1, 1, 100 << 10, nullptr, parameters, nullptr),
          CUDA_ERROR_INVALID_VALUE);
    CHECK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10));
    CHECK(cuLaunchKernel(kernel, 1, 1, 1, kThreads, 1, 1, 100 << 10, nullptr, parameters, nullptr));
    int blocks = 0;
    CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kThreads, 100 << 10));
    REQUIRE(blocks == 2);
    FAILS(cuLaunchKernel(kernel, 1, 1, 1, 1025, 1, 1, 0, nullptr, parameters, nullptr),
          CUDA_ERROR_INVALID_VALUE);
    CHECK(cuCtxSynchronize());
}

void cooperate(CUmodule module) {
    constexpr unsigned kBlocks = 16;
    CUdeviceptr words = 0, sums = 0;
    CHECK(cuMemAlloc(&words, 4 * kBlocks));
    CHECK(cuMemAlloc(&sums, 4 * kBlocks));
    void* parameters[] = {&words, &sums};
    CUfunction kernel = function(module, "together");
    CHECK(cuLaunchCooperativeKernel(kernel, kBlocks, 1, 1, 64, 1, 1, 0, nullptr, parameters));
    unsigned seen[kBlocks] = {};
    CHECK(cuMemcpyDtoH(seen, sums, sizeof seen));
    for (unsigned sum : seen) REQUIRE(sum == kBlocks * (kBlocks + 1) / 2);
    // More than can be resident could wait for ever.
    FAILS(cuLaunchCooperativeKernel(kernel, 100'000, 1, 1, 64, 1, 1, 0, nullptr, parameters),
          CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

}  // namespace

int main(int count, char** arguments) {
    preload::start();
    std::ifstream file(arguments[1], std::ios::binary);
    std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    image.push_back(0);
    CUmodule module = nullptr;
    if (count > 2) {
        FAILS(cuModuleLoadData(&module, image.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
        return 0;
    }
    CHECK(cuModuleLoadData(&module, image.data()));
    reduce(module);
    reverse(module);
    cooperate(module);
    int registers = 0;
    CHECK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function(module, "reduce")));
    std::printf("registers %d\n", registers);
    std::fflush(stdout);
    CHECK(cuLaunchKernel(function(module, "greet"), 2, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    CHECK(cuCtxSynchronize());
    CHECK(cuModuleUnload(module));
}
