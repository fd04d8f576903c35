// Memory of a fenced session that is freed while work of it is under way.
#include <catch2/catch.hpp>

#include "runtime/server/memory/arena.h"
#include "runtime/server/memory/fence.h"
#include "runtime/server/memory/tenant_memory.h"
#include "tests/memory/chunk_device.h"

using namespace smt;
using namespace smt::runtime::server;

namespace {

constexpr uint64_t kRange = 1ull << 40, kRangeBytes = 64 * kChunkBytes, kLargeOne = 2 * kChunkBytes;

struct FencedMemory {
    tests::ChunkDevice device;
    bool idle = false;
    FenceRecord record{};
    uint32_t told = 0;
    Fence fence{device, [this] { return idle; }};
    MemoryAccountPointer account = std::make_shared<MemoryAccount>(0);
    Arena arena{device.driver(), account};
    TenantMemory memory{device, arena, kRange, kRangeBytes, account, nullptr, nullptr, &fence};

    FencedMemory() { REQUIRE(fence.open(kRange, kRangeBytes, &record, &told) == CUDA_SUCCESS); }

    bool open(uint64_t address) {
        const std::vector<char>& block = device.mapped.at(tests::ChunkDevice::kReserved);
        return block[sizeof(FenceBlock) + ((address - kRange) >> kFenceGranuleShift)] != 0;
    }
};

}  // namespace

TEST_CASE("freed memory is closed at once and unmapped when no work is under way", "[fence]") {
    FencedMemory it;
    CUdeviceptr address = 0;
    REQUIRE(it.memory.allocate(kLargeOne, &address) == CUDA_SUCCESS);
    CHECK(it.open(address));
    REQUIRE(it.memory.free(address) == CUDA_SUCCESS);
    it.memory.trim();
    CHECK_FALSE(it.open(address));
    CHECK(it.device.mapped.contains(address));
    CHECK(it.account->held() == kLargeOne);
    CUdeviceptr another = 0;
    REQUIRE(it.memory.allocate(kLargeOne, &another) == CUDA_SUCCESS);
    CHECK(another != address);
    it.idle = true;
    REQUIRE(it.memory.free(another) == CUDA_SUCCESS);
    CHECK_FALSE(it.device.mapped.contains(address));
    CHECK(it.device.mapped.contains(another));  // it is kept for the next allocation
    it.memory.trim();
    CHECK_FALSE(it.device.mapped.contains(another));
    CHECK(it.account->held() == 0);
}

TEST_CASE("a shared block is closed once, whenever it is unmapped", "[fence]") {
    FencedMemory it;
    CUmemGenericAllocationHandle handle = 0;
    REQUIRE(it.device.driver().cuMemCreate(&handle, kChunkBytes, nullptr, 0) == CUDA_SUCCESS);
    auto physical = std::make_shared<PhysicalAllocation>(it.device, kChunkBytes, Charge(), 0, false);
    physical->own_handle(handle);
    auto block = std::make_shared<const SharedBlock>(SharedBlock{physical, 512, 512});
    CUdeviceptr address = 0, again = 0;
    REQUIRE(it.memory.open_shared(block, &address) == CUDA_SUCCESS);
    REQUIRE(it.memory.open_shared(block, &again) == CUDA_SUCCESS);
    CHECK(again == address);
    CHECK(it.memory.close_shared(address) == CUDA_SUCCESS);
    CHECK(it.open(address));
    CHECK(it.memory.close_shared(address) == CUDA_SUCCESS);
    CHECK_FALSE(it.open(address));
    CHECK(it.device.mapped.contains(address - 512));
    CHECK(it.memory.close_shared(address) == CUDA_ERROR_INVALID_VALUE);
    REQUIRE(it.memory.open_shared(block, &again) == CUDA_SUCCESS);
    CHECK(again != address);
    it.idle = true;
    it.memory.trim();
    CHECK_FALSE(it.device.mapped.contains(address - 512));
    CHECK(it.device.mapped.contains(again - 512));
    CHECK(it.memory.close_shared(again) == CUDA_SUCCESS);
    CHECK_FALSE(it.device.mapped.contains(again - 512));
}
