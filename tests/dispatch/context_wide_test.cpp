// The gate in front of driver calls that wait for the whole context: not while a stream waits for a client's doing.
#include "runtime/device/cuda/context_wide.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

namespace smt::runtime::device {

namespace {

std::atomic<CUresult> stream_state{CUDA_SUCCESS};
std::atomic<int> looked{0}, functions_loaded{0};
unsigned memory_freed = 0, modules_unloaded = 0;

// Once in a process: the gate keeps the table that it was given.
DriverApi& guarded_driver() {
    static DriverApi driver = [] {
        DriverApi real{};
        real.cuStreamQuery = [](CUstream) { return ++looked, stream_state.load(); };
        real.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* capture) {
            *capture = CU_STREAM_CAPTURE_STATUS_NONE;
            return CUDA_SUCCESS;
        };
        real.cuStreamWaitValue32_v2 = [](CUstream, CUdeviceptr, cuuint32_t, unsigned) { return CUDA_SUCCESS; };
        real.cuMemFree_v2 = [](CUdeviceptr) { return ++memory_freed, CUDA_SUCCESS; };
        real.cuModuleUnload = [](CUmodule) { return ++modules_unloaded, CUDA_SUCCESS; };
        real.cuModuleGetFunction = [](CUfunction*, CUmodule, const char*) { return ++functions_loaded, CUDA_SUCCESS; };
        real.cuKernelGetFunction = [](CUfunction*, CUkernel) { return ++functions_loaded, CUDA_SUCCESS; };
        real.cuMemHostUnregister = [](void*) { return CUDA_SUCCESS; };
        guard_context_wide_calls(real);
        return real;
    }();
    return driver;
}

}  // namespace

TEST_CASE("calls that wait for the whole context are put off while a stream waits for a word") {
    DriverApi& driver = guarded_driver();
    stream_state = CUDA_ERROR_NOT_READY;
    REQUIRE(driver.cuStreamWaitValue32_v2(nullptr, 0, 1, 0) == CUDA_SUCCESS);
    CHECK(driver.cuMemFree_v2(1) == CUDA_SUCCESS);
    CHECK(driver.cuModuleUnload(nullptr) == CUDA_SUCCESS);
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_ERROR_NOT_READY);
    CHECK(memory_freed == 0);
    CHECK(modules_unloaded == 0);

    stream_state = CUDA_SUCCESS;
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_SUCCESS);
    CHECK(memory_freed == 1);
    CHECK(modules_unloaded == 1);
}

TEST_CASE("a function is loaded when no stream waits for a word: the driver would let nothing begin behind it") {
    DriverApi& driver = guarded_driver();
    stream_state = CUDA_ERROR_NOT_READY;
    REQUIRE(driver.cuStreamWaitValue32_v2(nullptr, 0, 1, 0) == CUDA_SUCCESS);
    looked = functions_loaded = 0;
    std::thread of_a_module([&] { CHECK(driver.cuModuleGetFunction(nullptr, nullptr, "kernel") == CUDA_SUCCESS); });
    std::thread of_a_library([&] { CHECK(driver.cuKernelGetFunction(nullptr, nullptr) == CUDA_SUCCESS); });
    while (looked < 6 && functions_loaded == 0) std::this_thread::yield();
    CHECK(functions_loaded == 0);
    stream_state = CUDA_SUCCESS;
    of_a_module.join();
    of_a_library.join();
    CHECK(functions_loaded == 2);
}

}  // namespace smt::runtime::device
