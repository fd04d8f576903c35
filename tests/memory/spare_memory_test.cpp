// Which chunks of a session are spare for the next one (runtime/device/spare_chunks.h), and from when on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "runtime/server/memory/arena.h"
#include "runtime/server/memory/tenant_memory.h"
#include "tests/memory/chunk_device.h"

using namespace smt;
using namespace smt::runtime::server;

namespace {

struct Memory {
    static constexpr uint64_t kBase = 1ull << 40, kBytes = 64 * kChunkBytes, kOne = 2 * kChunkBytes;
    tests::ChunkDevice device;
    MemoryAccountPointer account = std::make_shared<MemoryAccount>(0);
    Arena arena{device.driver(), account};
    TenantMemory memory{device, arena, kBase, kBytes, account, nullptr, nullptr, nullptr};
    CUdeviceptr address = 0;

    Memory() {
        device.physical_memory().serves_device_of(1ull << 40);
        REQUIRE(memory.allocate(kOne, &address) == CUDA_SUCCESS);
    }
    uint64_t spare() {
        size_t free = 0, total = 0;
        REQUIRE(device.physical_memory().room(&free, &total) == CUDA_SUCCESS);
        return free - device.free_bytes;
    }
};

}  // namespace

TEST_CASE("a chunk is spare after its session is told, and zero for the next one", "[spare]") {
    std::vector<uint64_t> spare_when_told;
    Memory it;
    std::ranges::fill(it.device.mapped.at(it.address), char(0x77));
    it.memory.tell_returned([&] { spare_when_told.push_back(it.spare()); });
    it.memory.clear();
    CHECK(spare_when_told == std::vector<uint64_t>{0});
    CHECK(it.spare() == Memory::kOne);
    CHECK(it.account->held() == 0);
    it.device.fails_at["cuMemCreate"] = 1;
    CUdeviceptr next = 0;
    REQUIRE(it.memory.allocate(Memory::kOne, &next) == CUDA_SUCCESS);
    CHECK(it.spare() == 0);
    CHECK(it.device.mapped.at(next) == std::vector<char>(Memory::kOne));
}

TEST_CASE("what another session may have mapped, and what stays mapped, is not spare", "[spare]") {
    Memory it;
    SharedBlockPointer block;
    SECTION("a shared chunk") { REQUIRE(it.memory.share(it.address, &block) == CUDA_SUCCESS); }
    SECTION("one whose unmapping fails") { it.device.fails_at["cuMemUnmap"] = 1; }
    it.memory.clear();
    CHECK(it.spare() == 0);
}

TEST_CASE("an allocation without room finds what is spare", "[spare]") {
    Memory it;
    it.memory.clear();
    it.device.free_bytes = kChunkBytes;
    CUdeviceptr next = 0;
    REQUIRE(it.memory.allocate(Memory::kOne + kChunkBytes, &next) == CUDA_SUCCESS);
    CHECK(it.spare() == 0);
}
