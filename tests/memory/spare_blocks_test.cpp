// Host memory that is kept for the next time that chunks leave the device.
#include "runtime/server/memory/spare_blocks.h"

#include <catch2/catch.hpp>

#include "tests/memory/chunk_device.h"

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;

constexpr uint64_t kBytes = 64 << 10;

struct Spare {
    explicit Spare(uint64_t limit = 0) : account(std::make_shared<MemoryAccount>(limit)) {
        blocks = std::make_shared<SpareBlocks>(device.driver());
    }
    std::shared_ptr<HostBlock> take(uint64_t bytes) { return blocks->take(bytes, account, &missing); }

    tests::ChunkDevice device;
    MemoryAccountPointer account;
    std::shared_ptr<SpareBlocks> blocks;
    uint64_t missing = 0;
};

}  // namespace

TEST_CASE("spare blocks: one that is free again is the next one, whatever is asked for", "[spare_blocks]") {
    Spare spare;
    auto first = spare.take(4 * kBytes), second = spare.take(2 * kBytes);
    const HostBlock *const larger = first.get(), *const smaller = second.get();
    first.reset();
    second.reset();
    CHECK(spare.device.pinned == 2);
    CHECK(spare.blocks->spare_bytes() == 6 * kBytes);
    auto again = spare.take(kBytes);
    CHECK(again.get() == smaller);  // the smallest that is large enough
    again.reset();
    again = spare.take(8 * kBytes);
    CHECK(again.get() == larger);  // the rest comes from others
    const auto rest = spare.take(4 * kBytes);
    CHECK(rest.get() == smaller);
    const auto new_one = spare.take(2 * kBytes);
    CHECK(new_one->bytes() == 2 * kBytes);
    CHECK(spare.device.pinned == 3);
}

TEST_CASE("spare blocks: other programs get them, and those that have them are charged", "[spare_blocks]") {
    Spare spare(4 * kBytes);
    auto first = spare.take(3 * kBytes);
    REQUIRE(first);
    CHECK_FALSE(spare.take(2 * kBytes));
    CHECK(spare.missing == kBytes);
    CHECK(spare.account->held() == 3 * kBytes);
    first.reset();
    CHECK(spare.account->held() == 0);
    const auto other = std::make_shared<MemoryAccount>(2 * kBytes);
    const auto part = spare.blocks->take(kBytes, other, &spare.missing);  // of a larger block
    REQUIRE(part);
    CHECK(part->bytes() == 3 * kBytes);
    CHECK(other->held() == kBytes);
    CHECK(spare.device.pinned == 1);
    CHECK(spare.blocks->take(kBytes, nullptr, &spare.missing));
}

TEST_CASE("spare blocks: more than one block holds", "[spare_blocks]") {
    Spare spare;
    const auto block = spare.take(HostBlock::kLargest + kBytes);
    REQUIRE(block);
    CHECK(block->bytes() == HostBlock::kLargest);
    CHECK(spare.account->held() == HostBlock::kLargest);
}

TEST_CASE("spare blocks: made ahead of a move", "[spare_blocks]") {
    Spare spare;
    CHECK(spare.blocks->prepare(2 * kBytes));
    CHECK(spare.blocks->prepare(kBytes));  // there is more
    CHECK(spare.blocks->spare_bytes() == 2 * kBytes);
    CHECK(spare.blocks->prepare(3 * kBytes));
    CHECK(spare.blocks->spare_bytes() == 3 * kBytes);
    CHECK_FALSE(spare.blocks->prepare(~uint64_t{0}));
}

TEST_CASE("spare blocks: what is not used goes", "[spare_blocks]") {
    Spare spare;
    auto block = spare.take(kBytes);
    CHECK_FALSE(spare.blocks->take_unused(0s));  // it is not spare
    block.reset();
    CHECK_FALSE(spare.blocks->take_unused(1h));
    spare.blocks->use();
    CHECK_FALSE(spare.blocks->take_unused(1h));
    CHECK(spare.blocks->take_unused(0s));
    CHECK(spare.device.pinned == 0);
    CHECK(spare.blocks->spare_bytes() == 0);
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
