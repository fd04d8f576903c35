// Host memory that is kept for the next time that chunks leave the device.
#include "runtime/server/memory/spare_blocks.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>
#include <vector>

#include "tests/memory/chunk_device.h"

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;

constexpr uint64_t kBytes = 64 << 10;

struct Spare {
    explicit Spare(uint64_t limit = 0) : account(std::make_shared<MemoryAccount>(limit)) {
        device.pins = [this] {
            ++pins;
            if (takes != 0s) now += takes;
            if (while_pinning) while_pinning();
        };
        blocks = std::make_shared<SpareBlocks>(device.driver(), [this] {
            if (std::this_thread::get_id() == awaited) looked = true;
            return now;
        });
    }
    std::shared_ptr<HostBlock> take(uint64_t bytes) { return blocks->take(bytes, account, &missing); }

    // A helper that has nothing to make, until it has seen that.
    void helps_in_vain(size_t number) {
        bool made = false;
        std::thread helper([&] {
            while (!awaited_is_set) std::this_thread::yield();
            made = blocks->help(number);
        });
        awaited = helper.get_id();
        awaited_is_set = true;
        while (!looked) std::this_thread::yield();
        blocks->leave();  // which it looks for when it has looked for work
        helper.join();
        CHECK_FALSE(made);
    }

    tests::ChunkDevice device;
    std::atomic<int> pins = 0;
    std::function<void()> while_pinning;
    std::atomic<std::thread::id> awaited{};
    std::atomic<bool> awaited_is_set = false, looked = false;  // the awaited thread holds the blocks' lock
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
    const auto second = spare.take(all - HostBlock::kLargest), third = spare.take(kBytes);
    CHECK((second->bytes() == HostBlock::kLargest && third->bytes() == kBytes));
    spare.helps_in_vain(0);
    CHECK(spare.pins == 3);
}

TEST_CASE("spare blocks: one helper is enough where nothing moves", "[spare_blocks]") {
    Spare spare;
    spare.blocks->want(kBytes, false);
    SECTION("the other one waits") {
        spare.helps_in_vain(1);
        CHECK(spare.pins == 0);
    }
    SECTION("that one makes what is wanted") {
        CHECK(spare.blocks->help(0));
        CHECK(spare.blocks->spare_bytes() == kBytes);
    }
    SECTION("where something moves both do") {
        spare.blocks->want(kBytes, true);
        CHECK(spare.blocks->help(1));
    }
}

TEST_CASE("spare blocks: where pinned memory ends helpers wait, and moves take what there is",
          "[spare_blocks]") {
    Spare spare;
    spare.blocks->want(kBytes, true);
    spare.device.fails_at["cuMemHostRegister"] = 1;
    CHECK(spare.blocks->help(0));  // it has tried
    CHECK(spare.blocks->spare_bytes() == 0);
    CHECK(spare.blocks->figures().made_bytes == 0);
    SECTION("a move takes pageable memory") {
        spare.device.fails_at["cuMemHostRegister"] = 1;
        const auto block = spare.take(kBytes);
        REQUIRE(block);
        CHECK_FALSE(block->pinned());
    }
    SECTION("helpers wait for a while") {
        spare.helps_in_vain(0);
        CHECK(spare.pins == 0);
    }
    SECTION("and try again") {
        spare.now += 11s;
        CHECK(spare.blocks->help(0));
        CHECK(spare.blocks->spare_bytes() == kBytes);
    }
}

TEST_CASE("spare blocks: helpers keep to the bound", "[spare_blocks]") {
    Spare spare;
    spare.blocks->bound(2 * kBytes, kBytes);
    spare.blocks->want(8 * kBytes, true);
    const auto one = spare.take(kBytes);
    CHECK(spare.blocks->help(0));
    spare.helps_in_vain(0);
    CHECK(spare.pins == 2);
    const auto other = spare.take(kBytes);
    CHECK(other);
    CHECK_FALSE(spare.take(kBytes));
    CHECK(spare.missing == kBytes);
}

TEST_CASE("spare blocks: a move waits for the last block, which a helper makes", "[spare_blocks]") {
    Spare spare;
    spare.blocks->bound(kBytes, kBytes);
    spare.blocks->want(kBytes, true);
    spare.awaited = std::this_thread::get_id();
    std::atomic<bool> makes{false};
    spare.while_pinning = [&] {
        makes = true;
        while (!spare.looked) std::this_thread::yield();  // the move has the lock until it waits
    };
    spare.looked = false;
    std::thread helper([&] { spare.blocks->help(0); });
    while (!makes) std::this_thread::yield();
    CHECK(spare.take(kBytes));
    helper.join();
    CHECK(spare.pins == 1);
}

TEST_CASE("spare blocks: a move and helpers at the same time", "[spare_blocks]") {
    Spare spare;
    spare.blocks->bound(2 * kBytes, kBytes);
    spare.blocks->want(8 * kBytes, true);
    std::vector<std::thread> helpers;
    for (size_t i = 0; i < 2; ++i)
        helpers.emplace_back([&, i] {
            while (spare.blocks->help(i)) {
            }
        });
    for (int i = 0; i < 200; ++i) {
        const auto one = spare.take(kBytes), other = spare.take(kBytes);
        CHECK((one && other));
        CHECK_FALSE(spare.take(kBytes));
    }
    spare.blocks->leave();
    for (std::thread& each : helpers) each.join();
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
