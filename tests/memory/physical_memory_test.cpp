// Memory that other GPUs' servers may map, on systems with descriptors of memory and without, and memory that
// is spare.
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

CUmemGenericAllocationHandle next_handle = 0;
std::vector<CUmemGenericAllocationHandle> released;
size_t room_for = 0;  // chunks

CUresult create_one(CUmemGenericAllocationHandle* handle, size_t, const CUmemAllocationProp*,
                    unsigned long long) {
    if (room_for == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    --room_for;
    *handle = ++next_handle;
    return CUDA_SUCCESS;
}

CUresult release_one(CUmemGenericAllocationHandle handle) {
    ++room_for;
    released.push_back(handle);
    return CUDA_SUCCESS;
}

CUresult no_room(size_t* free, size_t* total) { return *free = 0, *total = 1 << 30, CUDA_SUCCESS; }

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
        return memory.make(2 << 20, &made);
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

TEST_CASE("physical memory: what is given back is there for its size, and for all that need room",
          "[physical_memory]") {
    using Handles = std::vector<CUmemGenericAllocationHandle>;
    constexpr uint64_t kMib = 1 << 20;
    DriverApi driver{};
    driver.cuMemCreate = create_one;
    driver.cuMemRelease = release_one;
    driver.cuMemGetInfo_v2 = no_room;
    const CUdevice device = 0;
    PhysicalMemory memory(driver, device);
    memory.serves_device_of(1024 * kMib);
    PhysicalMemory::Made first, second, third;
    next_handle = 0, room_for = 2;
    released.clear();
    REQUIRE(memory.make(2 * kMib, &first) == CUDA_SUCCESS);
    REQUIRE(memory.make(4 * kMib, &second) == CUDA_SUCCESS);
    memory.give_back(first, 2 * kMib);
    memory.give_back(second, 4 * kMib);
    CHECK(released.empty());
    size_t free = 0, total = 0;
    REQUIRE(memory.room(&free, &total) == CUDA_SUCCESS);
    CHECK(free == 6 * kMib);
    REQUIRE(memory.make(2 * kMib, &third) == CUDA_SUCCESS);
    CHECK(third.handle == first.handle);
    REQUIRE(memory.make(8 * kMib, &third) == CUDA_SUCCESS);  // of the other one's room
    CHECK(released == Handles{second.handle});
    CHECK(memory.make(8 * kMib, &third) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("physical memory: no more is spare than the bounds say, and not for ever", "[physical_memory]") {
    const auto handles = [](const std::vector<MadeChunk>& chunks) {
        std::vector<CUmemGenericAllocationHandle> all;
        for (const MadeChunk& each : chunks) all.push_back(each.handle);
        return all;
    };
    using Handles = std::vector<CUmemGenericAllocationHandle>;
    const SpareChunks::Clock::time_point begin{};
    constexpr uint64_t kHalf = 1000;
    SpareChunks spare;
    CHECK(handles(spare.add({1, 0}, 1, begin)) == Handles{1});
    spare.bound(2 * kHalf * SpareChunks::kShare);
    CHECK(handles(spare.add({1, 0}, 2 * kHalf + 1, begin)) == Handles{1});
    CHECK(spare.add({2, 0}, kHalf, begin).empty());
    CHECK(spare.add({3, 0}, kHalf, begin + SpareChunks::kLongest / 2).empty());
    CHECK(handles(spare.take_unused(begin + SpareChunks::kLongest)) == Handles{2});
    CHECK(spare.add({4, 0}, kHalf, begin + SpareChunks::kLongest).empty());
    CHECK(handles(spare.add({5, 0}, kHalf, begin + SpareChunks::kLongest)) == Handles{3});
    MadeChunk newest;
    CHECK((spare.take(kHalf, &newest) && newest.handle == 5));
    CHECK_FALSE(spare.take(kHalf / 2, &newest));
    CHECK(handles(spare.take_all()) == Handles{4});
    CHECK(spare.bytes() == 0);
    for (uint64_t i = 1; i <= SpareChunks::kMost; ++i) CHECK(spare.add({i, 0}, 1, begin).empty());
    CHECK(handles(spare.add({100, 0}, 1, begin)) == Handles{1});
}

}  // namespace smt::runtime::device
