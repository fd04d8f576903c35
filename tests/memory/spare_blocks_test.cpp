// Host memory that is kept for the next time that chunks leave the device.
#include "runtime/server/memory/spare_blocks.h"

#include <catch2/catch.hpp>

#include "tests/memory/chunk_device.h"

namespace smt::runtime::server {

namespace {

constexpr uint64_t kBytes = 64 << 10;

struct Spare {
    explicit Spare(uint64_t limit = 0) : account(std::make_shared<MemoryAccount>(limit)) {
        blocks = std::make_shared<SpareBlocks>(device.driver(), account);
    }
    std::shared_ptr<HostBlock> take(uint64_t bytes) { return blocks->take(bytes, &missing); }

    tests::ChunkDevice device;
    MemoryAccountPointer account;
    std::shared_ptr<SpareBlocks> blocks;
    uint64_t missing = 0;
};

}  // namespace

TEST_CASE("spare blocks: one that is free again is the next one", "[spare_blocks]") {
    Spare spare;
    auto first = spare.take(4 * kBytes), second = spare.take(2 * kBytes);
    const HostBlock* const smaller = second.get();
    first.reset();
    second.reset();
    CHECK(spare.device.pinned == 2);
    CHECK(spare.blocks->spare_bytes() == 6 * kBytes);
    const auto again = spare.take(kBytes);
    CHECK(again.get() == smaller);  // the smallest that is large enough
    CHECK(spare.device.pinned == 2);
    const auto larger = spare.take(8 * kBytes);  // for which what is spare is too small
    CHECK(spare.device.pinned == 2);
    CHECK(spare.blocks->spare_bytes() == 0);
    CHECK(spare.account->held() == 10 * kBytes);
}

TEST_CASE("spare blocks: within the program's limit", "[spare_blocks]") {
    Spare spare(4 * kBytes);
    auto first = spare.take(3 * kBytes);
    REQUIRE(first);
    CHECK_FALSE(spare.take(2 * kBytes));
    CHECK(spare.missing == kBytes);
    first.reset();
    CHECK(spare.account->held() == 3 * kBytes);  // spare, and held
    spare.blocks->drop();
    CHECK(spare.account->held() == 0);
    CHECK(spare.device.pinned == 0);
    CHECK(spare.take(4 * kBytes));
}

TEST_CASE("spare blocks: a block outlives them", "[spare_blocks]") {
    Spare spare;
    auto block = spare.take(kBytes);
    spare.blocks.reset();
    CHECK(spare.device.pinned == 1);
    block.reset();
    CHECK(spare.device.pinned == 0);
    CHECK(spare.account->held() == 0);
}

}  // namespace smt::runtime::server
