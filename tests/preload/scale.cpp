// Launches one kernel again and again on the default stream, with pageable copies around them, then with its
// parameters in a buffer.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/preload/program.h"

constexpr int kNumbers = 1 << 16;
constexpr int kDoublings = 12;
constexpr char kImage[] = "FAKE\nkernel scale params 8,4,4\n";

// The buffer ends where the process has no more memory.
CUresult launch_with_buffer(CUfunction scale, const void* parameters, size_t bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    char* pages = static_cast<char*>(
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    munmap(pages + page, page);
    char* buffer = pages + page - bytes;
    std::memcpy(buffer, parameters, bytes);
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    const CUresult status =
        cuLaunchKernel(scale, kNumbers / 256, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra);
    munmap(pages, page);
    return status;
}

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

    // A shorter buffer is good, and the rest is zero: no numbers are scaled.
    struct {
        CUdeviceptr memory;
        float by;
        int count, behind;
    } packed{memory, 0.5F, kNumbers, 0};
    CHECK(launch_with_buffer(scale, &packed, 16));
    CHECK(launch_with_buffer(scale, &packed, 12));
    REQUIRE(launch_with_buffer(scale, &packed, 0) == CUDA_ERROR_INVALID_VALUE);
    REQUIRE(launch_with_buffer(scale, &packed, 20) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK(cuMemcpyDtoH(numbers.data(), memory, kNumbers * sizeof(float)));
    for (int i = 0; i < kNumbers; ++i) REQUIRE(numbers[i] == static_cast<float>(i) * (1 << (kDoublings - 1)));
    CHECK(cuMemFree(memory));
    CHECK(cuModuleUnload(module));
    std::printf("%d numbers doubled %d times: right\n", kNumbers, kDoublings);
}
