// Calls behind one whose error comes late: they return that error or leave it to a later call, and are made.
#include <atomic>
#include <vector>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

namespace {

constexpr CUdeviceptr kWild = 0x10;
constexpr unsigned kCount = 256;
constexpr size_t kLarge = 8 << 20;  // is copied in several pieces

CUfunction add = nullptr;
CUstream stream = nullptr;
CUdeviceptr memory = 0, large = 0;

// Its error is there when this returns.
void fail_late() {
    size_t free = 0, total = 0;
    CHECK(cuMemcpyDtoDAsync(memory, kWild, 4, stream));
    CHECK(cuMemGetInfo(&free, &total));
    REQUIRE(free && total);
}

unsigned word() {
    unsigned value = 0;
    CHECK(cuMemcpyDtoH(&value, memory, sizeof value));
    return value;
}

void fill(unsigned value) {
    CHECK(cuMemsetD32(memory, value, kCount));
    CHECK(cuStreamSynchronize(CU_STREAM_LEGACY));
}

CUresult double_it() {
    unsigned count = kCount;
    void* parameters[] = {&memory, &memory, &memory, &count};
    return cuLaunchKernel(add, kCount / 128, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr);
}

void launches_and_fills() {
    fill(21);
    fail_late();
    FAILS(double_it(), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuStreamSynchronize(stream));
    REQUIRE(word() == 42);
    fail_late();
    FAILS(cuMemsetD32Async(memory, 7, kCount, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuStreamSynchronize(stream));
    REQUIRE(word() == 7);
}

void copies() {
    unsigned value = 0, *pinned = nullptr;
    CHECK(cuMemAllocHost(reinterpret_cast<void**>(&pinned), sizeof *pinned));
    fill(5);
    fail_late();
    FAILS(cuMemcpyDtoH(&value, memory, sizeof value), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(value == 5);
    fail_late();
    FAILS(cuMemcpyDtoH(pinned, memory, sizeof *pinned), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(*pinned == 5);
    fail_late();
    value = 6;
    FAILS(cuMemcpyHtoD(memory, &value, sizeof value), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(word() == 6);
    fail_late();
    FAILS(cuMemcpyDtoD(memory, memory + 4, 4), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(word() == 5);
    std::vector<unsigned char> there(kLarge, 3), back(kLarge);
    fail_late();
    FAILS(cuMemcpyHtoD(large, there.data(), kLarge), CUDA_ERROR_INVALID_VALUE);
    fail_late();
    FAILS(cuMemcpyDtoH(back.data(), large, kLarge), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(back == there);
    CHECK(cuMemFreeHost(pinned));
}

// What is created is there, and what is destroyed is gone.
void objects() {
    CUdeviceptr made = 0, base = 0;
    size_t bytes = 0;
    CUevent event = nullptr;
    CUstream other = nullptr;
    fail_late();
    CHECK(cuMemAlloc(&made, 4096));
    CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
    CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    FAILS(cuEventRecord(event, other), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuEventSynchronize(event));
    CHECK(cuEventQuery(event));
    fail_late();
    FAILS(cuEventDestroy(event), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
    fail_late();
    FAILS(cuStreamDestroy(other), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuStreamDestroy(other), CUDA_ERROR_INVALID_HANDLE);
    fail_late();
    FAILS(cuMemFree(made), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemGetAddressRange(&base, &bytes, made), CUDA_ERROR_NOT_FOUND);
}

std::atomic<int> called{0};

// A program may free what a call that fails was given, so this one does not fail.
void host_functions() {
    fail_late();
    CHECK(cuLaunchHostFunc(stream, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &called));
    FAILS(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuStreamSynchronize(stream));
    REQUIRE(called == 1);
}

// What was called into a broken capture has no error behind the capture's end.
void broken_capture() {
    CUgraph graph = nullptr;
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    FAILS(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    for (int i = 0; i < 200; ++i) double_it();  // the last ones fail after they return
    FAILS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(cuMemsetD32Async(memory, 4, kCount, stream));
    CHECK(double_it());
    CHECK(cuStreamSynchronize(stream));
    REQUIRE(word() == 8);
}

}  // namespace

int main() {
    preload::start();
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&memory, 4 * kCount));
    CHECK(cuMemAlloc(&large, kLarge));
    launches_and_fills();
    copies();
    objects();
    host_functions();
    broken_capture();
}
