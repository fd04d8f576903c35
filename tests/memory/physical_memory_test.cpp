// Memory that other GPUs' servers may map, on systems with descriptors of memory and without.
#include "runtime/device/physical_memory.h"

#include <catch2/catch.hpp>
#include <vector>

namespace smt::runtime::device {

namespace {

std::vector<CUmemAllocationHandleType> wanted_types;
CUresult with_descriptors = CUDA_SUCCESS;

CUresult create(CUmemGenericAllocationHandle* handle, size_t, const CUmemAllocationProp* properties,
                unsigned long long) {
    wanted_types.push_back(properties->requestedHandleTypes);
    *handle = 7;
    return properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ? CUDA_SUCCESS : with_descriptors;
}

}  // namespace

TEST_CASE("physical memory: without descriptors where the system has none, and not after other errors",
          "[physical_memory]") {
    constexpr auto kNone = CU_MEM_HANDLE_TYPE_NONE, kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    using Types = std::vector<CUmemAllocationHandleType>;
    DriverApi driver{};
    driver.cuMemCreate = create;
    const CUdevice device = 0;
    PhysicalMemory memory(driver, device);
    PhysicalMemory::Made made;
    const auto make = [&](CUresult status) {
        wanted_types.clear();
        with_descriptors = status;
        return memory.make(2 << 20, 0, &made);
    };
    CHECK(make(CUDA_SUCCESS) == CUDA_SUCCESS);
    CHECK(wanted_types == Types{kNone});  // no other GPU's server asks
    memory.lend_to_other_gpus();
    CHECK(make(CUDA_SUCCESS) == CUDA_SUCCESS);
    CHECK(wanted_types == Types{kFile});
    CHECK(make(CUDA_ERROR_NOT_SUPPORTED) == CUDA_SUCCESS);
    CHECK(wanted_types == Types{kFile, kNone});
    for (const CUresult error : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_UNKNOWN}) {
        CHECK(make(error) == error);
        CHECK(wanted_types == Types{kFile});
    }
}

}  // namespace smt::runtime::device
