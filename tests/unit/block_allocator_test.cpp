#include "runtime/server/memory/block_allocator.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

namespace smt::runtime::server {
namespace {

constexpr uint64_t kGranularity = 512;

TEST_CASE("the example of the header holds", "[allocator]") {
    BlockAllocator blocks(kGranularity);
    blocks.add(0x1000, 0x800);
    CHECK(blocks.allocate(100) == 0x1000);
    CHECK(blocks.allocate(512) == 0x1200);
    CHECK(blocks.release(0x1000) == 512);
    CHECK(blocks.allocate(600) == 0x1400);
    CHECK(blocks.used_bytes() == 512 + 1024);
    CHECK(blocks.requested_bytes() == 512 + 600);
    CHECK(blocks.region_bytes() == 0x800);
}

TEST_CASE("no room, no region: 0", "[allocator]") {
    BlockAllocator blocks(kGranularity);
    CHECK(blocks.allocate(1) == 0);
    blocks.add(0x1000, 0x400);
    CHECK(blocks.allocate(0x401) == 0);
    CHECK(blocks.allocate(~0ull) == 0);
    CHECK(blocks.allocate(0x400) == 0x1000);
    CHECK(blocks.allocate(1) == 0);
    CHECK(blocks.release(0x1200) == 0);
    CHECK(blocks.release(0x1000) == 0x400);
    CHECK(blocks.release(0x1000) == 0);
}

TEST_CASE("alignment and fixed addresses are kept", "[allocator]") {
    BlockAllocator blocks(kGranularity);
    blocks.add(0x1200, 0x10000);
    CHECK(blocks.allocate(1, 0x4000) == 0x4000);
    CHECK(blocks.allocate_at(0x2000, 0x400) == 0x2000);
    CHECK(blocks.allocate_at(0x2200, 0x200) == 0);
    CHECK(blocks.allocate_at(0x11000, 0x400) == 0);
    CHECK(blocks.find(0x23ff).base == 0x2000);
    CHECK(blocks.find(0x2400).bytes == 0);
    CHECK(blocks.find(0x4000).requested == 1);
}

TEST_CASE("only an idle region can be taken back, and whole", "[allocator]") {
    BlockAllocator blocks(kGranularity);
    blocks.add(0x1000, 0x1000);
    blocks.add(0x2000, 0x1000);  // neighbours never join
    CHECK(blocks.allocate(0x1800) == 0);
    uint64_t block = blocks.allocate(0x200);
    CHECK(blocks.idle_bytes() == 0x1000);
    auto [base, bytes] = blocks.take_idle_region();
    CHECK(bytes == 0x1000);
    CHECK(base == (block < 0x2000 ? 0x2000 : 0x1000));
    CHECK(blocks.take_idle_region().second == 0);
    blocks.release_all();
    CHECK(blocks.used_bytes() == 0);
    CHECK(blocks.requested_bytes() == 0);
    CHECK(blocks.region_bytes() == 0x1000);
    CHECK(blocks.take_idle_region().second == 0x1000);
    CHECK(blocks.region_bytes() == 0);
    CHECK(blocks.allocate(1) == 0);
}

TEST_CASE("blocks never overlap, and all released is all free", "[allocator]") {
    std::mt19937 random(1);
    BlockAllocator blocks(kGranularity);
    constexpr uint64_t kBase = 1 << 20, kBytes = 1 << 20;
    blocks.add(kBase, kBytes);
    std::map<uint64_t, uint64_t> live;
    for (int i = 0; i < 20'000; ++i) {
        if (!live.empty() && random() % 2) {
            auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
            REQUIRE(blocks.release(victim->first) == victim->second);
            live.erase(victim);
            continue;
        }
        uint64_t wanted = random() % 20'000 + 1;
        uint64_t at = blocks.allocate(wanted, random() % 4 ? 0 : 4096);
        if (!at) continue;
        uint64_t bytes = blocks.find(at).bytes;
        REQUIRE(bytes >= wanted);
        REQUIRE((at >= kBase && at + bytes <= kBase + kBytes));
        auto after = live.lower_bound(at);
        REQUIRE((after == live.end() || at + bytes <= after->first));
        REQUIRE((after == live.begin() || std::prev(after)->first + std::prev(after)->second <= at));
        live[at] = bytes;
    }
    for (auto& [at, bytes] : live) blocks.release(at);
    CHECK(blocks.idle_bytes() == kBytes);
    CHECK(blocks.allocate(kBytes) == kBase);
}

}  // namespace
}  // namespace smt::runtime::server
