// Control blocks' memory comes from the driver once, and a stream that ends gives it to the next.
#include <catch2/catch.hpp>

#include "runtime/dispatch/control_block.h"

namespace smt::runtime::dispatch {

namespace {

struct Counts {
    unsigned allocated = 0, freed = 0;
    bool full = false;
};
Counts counts;

CUresult allocate(CUdeviceptr* memory, size_t) {
    if (counts.full) return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = 0x1000 * ++counts.allocated;
    return CUDA_SUCCESS;
}
CUresult release(CUdeviceptr) { return ++counts.freed, CUDA_SUCCESS; }

DriverApi counting_driver() {
    counts = {};
    DriverApi driver{};
    driver.cuMemAlloc_v2 = allocate;
    driver.cuMemFree_v2 = release;
    driver.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr, const void*, size_t, CUstream) { return CUDA_SUCCESS; };
    driver.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
    return driver;
}

}  // namespace

TEST_CASE("a control block's memory is handed on, not freed") {
    const DriverApi driver = counting_driver();
    {
        ControlMemory memory(driver, 16);
        smt::Control* first = nullptr;
        {
            ControlBlock one(memory), other(memory);
            REQUIRE(one.open(nullptr) == CUDA_SUCCESS);
            REQUIRE(other.open(nullptr) == CUDA_SUCCESS);
            CHECK(one.address() != other.address());
            first = one.address();
        }
        CHECK(counts.freed == 0);  // the driver would wait for all tenants' work
        ControlBlock again(memory);
        REQUIRE(again.open(nullptr) == CUDA_SUCCESS);
        CHECK(again.address() == first);  // given back last
        CHECK(counts.allocated == 2);
    }
    CHECK(counts.freed == 2);
}

TEST_CASE("a control block without memory says so") {
    const DriverApi driver = counting_driver();
    ControlMemory memory(driver, 16);
    counts.full = true;
    ControlBlock block(memory);
    CHECK(block.open(nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace smt::runtime::dispatch
