// Host memory that is kept for the next time that chunks leave the device.
#include "runtime/server/memory/spare_blocks.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/memory/chunk_device.h"

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;

constexpr uint64_t kBytes = 64 << 10;

struct Spare {
    explicit Spare(uint64_t limit = 0) : account(std::make_shared<MemoryAccount>(limit)) {
        device.pins = [this] {
            if (takes != 0s) now += takes;
        };
        blocks = std::make_shared<SpareBlocks>(device.driver(), [this] { return now; });
    }
    std::shared_ptr<HostBlock> take(uint64_t bytes) { return blocks->take(bytes, account, &missing); }

    tests::ChunkDevice device;
    SpareBlocks::Clock::time_point now{1h};
    SpareBlocks::Clock::duration takes{};  // to pin a block
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

TEST_CASE("spare blocks: helpers make what is wanted ahead of a move, and no more", "[spare_blocks]") {
    Spare spare;
    spare.blocks->want(3 * kBytes, true);
    CHECK(spare.blocks->help(0));
    CHECK(spare.blocks->spare_bytes() == 3 * kBytes);
    const auto block = spare.take(3 * kBytes);
    CHECK(spare.blocks->help(1));  // another one
    CHECK(spare.blocks->spare_bytes() == 3 * kBytes);
    spare.blocks->want(HostBlock::kLargest + 4 * kBytes, true);
    CHECK(spare.blocks->help(0));
    CHECK(spare.blocks->spare_bytes() == HostBlock::kLargest + 3 * kBytes);
    spare.blocks->leave();
    CHECK_FALSE(spare.blocks->help(0));
}

TEST_CASE("spare blocks: helpers make what a move still needs while it makes its own", "[spare_blocks]") {
    Spare spare;
    const uint64_t all = 2 * HostBlock::kLargest + kBytes;
    const auto first = spare.take(all);
    CHECK(first->bytes() == HostBlock::kLargest);
    CHECK(spare.blocks->help(0));
    CHECK(spare.blocks->help(1));
    CHECK(spare.blocks->spare_bytes() == HostBlock::kLargest + kBytes);
    const int pinned = spare.device.pinned;
    const auto second = spare.take(all - HostBlock::kLargest), third = spare.take(kBytes);
    CHECK((second->bytes() == HostBlock::kLargest && third->bytes() == kBytes));
    CHECK(spare.device.pinned == pinned);
    std::thread helper([&] { CHECK_FALSE(spare.blocks->help(0)); });  // there is nothing to make
    spare.blocks->leave();
    helper.join();
    CHECK(spare.device.pinned == pinned);
}

TEST_CASE("spare blocks: one helper is enough where nothing moves", "[spare_blocks]") {
    Spare spare;
    spare.blocks->want(kBytes, false);
    std::thread second([&] { CHECK_FALSE(spare.blocks->help(1)); });
    CHECK(spare.blocks->help(0));
    spare.blocks->leave();
    second.join();
    CHECK(spare.device.pinned == 1);
}

TEST_CASE("spare blocks: where pinned memory ends helpers wait, and moves take what there is",
          "[spare_blocks]") {
    Spare spare;
    spare.blocks->want(kBytes, true);
    spare.device.fails_at["cuMemHostRegister"] = 1;
    CHECK(spare.blocks->help(0));  // it has tried
    CHECK(spare.blocks->spare_bytes() == 0);
    CHECK(spare.blocks->figures().made_bytes == 0);
    spare.device.fails_at["cuMemHostRegister"] = 1;
    const auto block = spare.take(kBytes);
    REQUIRE(block);
    CHECK_FALSE(block->pinned());
    spare.now += 11s;
    CHECK(spare.blocks->help(0));
    CHECK(spare.blocks->spare_bytes() == kBytes);
}

TEST_CASE("spare blocks: helpers keep to the bound, and a move waits for the block that they make",
          "[spare_blocks]") {
    Spare spare;
    spare.blocks->bound(2 * kBytes, kBytes);
    spare.blocks->want(8 * kBytes, true);
    std::atomic<int> made{0};
    const auto helps = [&](size_t number) {
        while (spare.blocks->help(number)) ++made;
    };
    std::thread first(helps, 0), second(helps, 1);
    for (int i = 0; i < 200; ++i) {
        const auto one = spare.take(kBytes), other = spare.take(kBytes);
        CHECK((one && other));  // also while a helper makes the second one
        CHECK_FALSE(spare.take(kBytes));
        CHECK(spare.missing == kBytes);
    }
    spare.blocks->leave();
    first.join();
    second.join();
    CHECK(made <= 2);
    CHECK(spare.device.pinned == 2);
}

TEST_CASE("spare blocks: what was pinned, and the time that it took", "[spare_blocks]") {
    Spare spare;
    spare.takes = 3s;
    auto block = spare.take(2 * kBytes);
    spare.blocks->want(kBytes, true);
    CHECK(spare.blocks->help(0));
    SpareBlocks::Figures figures = spare.blocks->figures();
    CHECK(figures.pinned_bytes == 3 * kBytes);
    CHECK(figures.made_bytes == 3 * kBytes);
    CHECK(figures.making == 6s);
    block.reset();
    block = spare.take(kBytes);  // of the spare ones
    spare.blocks->want(0, true);
    CHECK(spare.blocks->take_unused(0s));
    figures = spare.blocks->figures();
    CHECK(figures.pinned_bytes == kBytes);
    CHECK(figures.made_bytes == 3 * kBytes);
    CHECK(figures.making == 6s);
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
