#include "runtime/server/memory/host_block.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/memory/chunk_device.h"

namespace smt::runtime::server {

namespace {

constexpr uint64_t kMost = ~uint64_t{0};
constexpr char kMeminfo[] =
    "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:     160 kB\nSwapFree:         32 kB\n";

}  // namespace

TEST_CASE("host block: what a machine has room for", "[host_block]") {
    const HostBlock::Room room = HostBlock::room_of(kMeminfo, kMost, 0);
    CHECK(room.pinned == 120 << 10);    // three quarters of what is available
    CHECK(room.pageable == 180 << 10);  // most of that and of what may be swapped out
    const HostBlock::Room in_group = HostBlock::room_of(kMeminfo, 64 << 10, 0);
    CHECK(in_group.pinned == 48 << 10);
    CHECK(in_group.pageable == 60 << 10);
    CHECK(HostBlock::room_of("", kMost, 0).pageable == 0);
    // What blocks have is no reason to take more of the rest.
    const HostBlock::Room beside =
        HostBlock::room_of("MemAvailable: 100 kB\nSwapFree: 32 kB\n", kMost, 60 << 10);
    CHECK(beside.pinned == 60 << 10);
    CHECK(beside.pageable == 120 << 10);
    CHECK(HostBlock::room_of("MemAvailable: 10 kB\n", kMost, 60 << 10).pinned == 0);
    CHECK(HostBlock::room().pageable > 0);
}

TEST_CASE("host block: pinned, else pageable, else what is missing", "[host_block]") {
    tests::ChunkDevice device;
    const auto make = [&](HostBlock::Room room, uint64_t* missing) {
        return HostBlock::make(device.driver(), 1 << 20, room, missing);
    };
    uint64_t missing = 7;
    {
        const auto block = make({1 << 20, 1 << 20}, &missing);
        REQUIRE(block);
        CHECK(block->pinned());
        CHECK(device.pinned == 1);
        CHECK(missing == 0);
        std::memset(block->at(0), 1, block->bytes());
        device.fails_at["cuMemHostUnregister"] = 1;  // not now
    }
    CHECK(device.pinned == 0);
    const auto small = make({(1 << 20) - 1, 1 << 20}, &missing);
    REQUIRE(small);
    CHECK_FALSE(small->pinned());
    device.fails_at["cuMemHostRegister"] = 1;
    const auto refused = make({1 << 20, 1 << 20}, &missing);
    REQUIRE(refused);
    CHECK_FALSE(refused->pinned());
    CHECK_FALSE(make({0, 1 << 19}, &missing));
    CHECK(missing == 1 << 19);
    device.fails_at["cuMemHostRegister"] = 1;
    CHECK_FALSE(make({1 << 20, 1 << 19}, &missing));  // room for it there was only as pinned memory
    CHECK(missing == 1 << 19);
}

}  // namespace smt::runtime::server
