// Launches one kernel again and again on the default stream, with pageable copies around them.
#include <vector>

#include "tests/preload/program.h"

constexpr int kNumbers = 1 << 16;
constexpr int kDoublings = 12;
constexpr char kImage[] = "FAKE\nkernel scale params 8,4,4\n";

int main() {
    preload::start();
    CUmodule module = nullptr;
    CUfunction scale = nullptr;
    CUdeviceptr memory = 0;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&scale, module, "scale"));
    std::vector<float> numbers(kNumbers);
    for (int i = 0; i < kNumbers; ++i) numbers[i] = static_cast<float>(i);
    CHECK(cuMemAlloc(&memory, kNumbers * sizeof(float)));
    CHECK(cuMemcpyHtoD(memory, numbers.data(), kNumbers * sizeof(float)));

    float by = 2;
    int count = kNumbers;
    void* parameters[] = {&memory, &by, &count};
    for (int i = 0; i < kDoublings; ++i)
        CHECK(cuLaunchKernel(scale, kNumbers / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuCtxSynchronize());

    CHECK(cuMemcpyDtoH(numbers.data(), memory, kNumbers * sizeof(float)));
    for (int i = 0; i < kNumbers; ++i) REQUIRE(numbers[i] == static_cast<float>(i) * (1 << kDoublings));
    CHECK(cuMemFree(memory));
    CHECK(cuModuleUnload(module));
    std::printf("%d numbers doubled %d times: right\n", kNumbers, kDoublings);
}
