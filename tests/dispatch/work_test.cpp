#include "runtime/dispatch/work.h"

#include <catch2/catch.hpp>

using smt::runtime::dispatch::ManagedFunction;
using smt::runtime::dispatch::Work;
using namespace std::chrono_literals;

namespace {

Work issued(uint64_t total, uint32_t ticket, uint32_t tickets, uint32_t chunk, uint32_t covered) {
    Work work;
    work.total = total;
    work.tickets = {ticket, tickets, chunk};
    work.covered = covered;
    return work;
}

uint64_t done_after(Work work, uint32_t run) {
    work.settle(run);
    CHECK(work.tickets.count == 0);
    return work.done;
}

}  // namespace

TEST_CASE("tickets run tell how many blocks are done", "[dispatch]") {
    const Work work = issued(100, 1000, 100, 1, 100);
    CHECK(done_after(work, 0) == 0);
    CHECK(done_after(work, 1000) == 0);  // others' tickets
    CHECK(done_after(work, 1001) == 1);
    CHECK(done_after(work, 1099) == 99);
    CHECK(done_after(work, 1100) == 100);
    CHECK(done_after(work, 5000) == 100);  // later launches' tickets
}

TEST_CASE("the last ticket of several blocks may be for fewer", "[dispatch]") {
    const Work work = issued(10, 0, 3, 4, 10);
    CHECK(done_after(work, 1) == 4);
    CHECK(done_after(work, 2) == 8);
    CHECK(done_after(work, 3) == 10);
}

TEST_CASE("blocks of tickets that were taken back are not done", "[dispatch]") {
    // Tickets 1000 to 1019 were taken, and that of block 12 taken back: so is all behind it.
    const Work work = issued(100, 1000, 100, 1, 100);
    CHECK(work.over_at(1020) - work.over_at(1012) == 8);
    CHECK(done_after(work, 1012) == 12);
    const Work chunks = issued(10, 0, 3, 4, 10);
    CHECK(chunks.over_at(3) - chunks.over_at(1) == 6);
}

TEST_CASE("a launch goes on from where it stopped", "[dispatch]") {
    Work work = issued(1ull << 33, 0, 1u << 30, 1, 1u << 30);
    work.settle(1u << 30);
    CHECK(work.done == 1ull << 30);
    CHECK(work.left() == (1ull << 33) - (1ull << 30));
    work.tickets = {7, 5, 1}, work.covered = 5;
    work.settle(9);
    CHECK(work.done == (1ull << 30) + 2);
}

namespace {

constexpr uint32_t kFinal = smt::kFinalFrontier;

// Blocks done of a run of blocks [done, done + covered) whose frontier is that word.
uint64_t done_at_door(uint64_t total, uint32_t unit, uint64_t done, uint32_t covered, uint32_t frontier) {
    Work work = issued(total, 0, 0, 1, covered);
    work.unit = unit;
    work.done = done;
    work.settle_door(frontier);
    CHECK(work.covered == 0);
    CHECK(work.left() == total - work.done);
    return work.done;
}

}  // namespace

TEST_CASE("a frontier tells how many blocks are done", "[dispatch]") {
    struct Row {
        const char* what;
        uint64_t total;
        uint32_t unit;
        uint64_t done;
        uint32_t covered;
        uint32_t frontier;
        uint64_t expected;
    };
    const Row rows[] = {
        {"not stopped", 100, 1, 0, 100, 96, 100},
        {"not stopped, and no block of a step moved it", 100, 1, 0, 100, 0, 100},
        {"stopped in the middle", 100, 1, 0, 100, kFinal | 40, 40},
        {"stopped before the first block", 100, 1, 0, 100, kFinal, 0},
        {"stopped when all were admitted: a step reaches beyond the end", 100, 1, 0, 100, kFinal | 128, 100},
        {"stopped at the end", 100, 1, 0, 100, kFinal | 100, 100},
        {"the rest, not stopped", 100, 1, 40, 60, 96, 100},
        {"the rest, stopped in the middle", 100, 1, 40, 60, kFinal | 72, 72},
        {"the rest, stopped before its first block", 100, 1, 40, 60, kFinal, 40},
        {"the rest, stopped beyond its end", 100, 1, 40, 60, kFinal | 104, 100},
        {"a slice, not stopped", 100, 1, 40, 20, 56, 60},
        {"a slice, stopped in the middle", 100, 1, 40, 20, kFinal | 48, 48},
        {"a slice, stopped: a step reaches beyond its end", 100, 1, 40, 20, kFinal | 64, 60},
        {"clusters, not stopped", 96, 4, 0, 96, 16, 96},
        {"clusters, stopped in the middle", 96, 4, 0, 96, kFinal | 8, 32},
        {"clusters, the rest stopped before its first", 96, 4, 32, 64, kFinal, 32},
        {"clusters, stopped beyond the end", 96, 4, 32, 64, kFinal | 32, 96},
        {"a cluster of as many as there can be units", 1u << 30, 16, 0, 1u << 30, kFinal | (1u << 26) | 4096,
         1u << 30},
        {"as many units as there can be", 1u << 30, 1, 0, 1u << 30, kFinal | (1u << 29), 1u << 29},
    };
    for (const Row& row : rows) {
        INFO(row.what);
        CHECK(done_at_door(row.total, row.unit, row.done, row.covered, row.frontier) == row.expected);
    }
}

TEST_CASE("what fits is remembered for one shape", "[dispatch]") {
    smt::runtime::dispatch::ManagedFunction function;
    CHECK(function.fitting(128, 0) == 0);
    function.set_fitting(128, 4096, 16);
    CHECK(function.fitting(128, 4096) == 16);
    CHECK(function.fitting(128, 0) == 0);
    CHECK(function.fitting(256, 4096) == 0);
    function.forget();
    CHECK(function.fitting(128, 4096) == 0);
}

TEST_CASE("a grid of more blocks than a launch can count is cut into works", "[dispatch]") {
    Work work = issued((uint64_t{5} << 30) + 7, 0, 1u << 30, 1, 1u << 30);
    work.done = uint64_t{1} << 30;
    std::optional<Work> rest = work.cut();
    REQUIRE(rest);
    CHECK(work.left() == 1u << 30);
    CHECK(rest->done == uint64_t{2} << 30);
    CHECK(rest->left() == (uint64_t{3} << 30) + 7);
    work.settle(~0u);
    CHECK(work.left() == 0);
    CHECK_FALSE(issued(100, 0, 100, 1, 100).cut());
}

TEST_CASE("a launch's time alone is by launches that were alone, else by the first one's blocks",
          "[dispatch]") {
    namespace profiles = smt::runtime::profiles;
    ManagedFunction function;
    const profiles::Shape shape{{256, 1, 1}, 1024};
    CHECK_FALSE(function.time_alone(shape, 100));
    function.block_ns = 50;
    CHECK(*function.time_alone(shape, 100) == 550ns);  // eleven rounds
    CHECK_FALSE(function.time_alone(shape, 0));
    function.known = std::make_shared<profiles::KnownKernel>(
        "kernel", "image", profiles::DeviceFacts{"a device", 10, {1e9, 40, 20}, {}});
    CHECK(*function.time_alone(shape, 100) == 550ns);  // nothing is known of it yet
    smt::profiler::Profile stored;
    stored.key = {"kernel", "image", {256, 1, 1}, 10, "a device"};
    stored.times[{10, 4}] = {1, 100, 0, 700};
    function.known->know({stored});
    CHECK(*function.time_alone(shape, 100) == 7168ns);
}

TEST_CASE("before a program's own launches have told, a block takes what other programs' launches say",
          "[dispatch]") {
    namespace profiles = smt::runtime::profiles;
    ManagedFunction function;
    const profiles::Shape shape{{256, 1, 1}, 1024};
    CHECK(function.expected_block_ns(shape, 100) == 0);
    function.known = std::make_shared<profiles::KnownKernel>(
        "kernel", "image", profiles::DeviceFacts{"a device", 10, {1e9, 40, 20}, {}});
    CHECK(function.expected_block_ns(shape, 100) == 0);
    smt::profiler::Profile stored;
    stored.key = {"kernel", "image", {256, 1, 1}, 10, "a device"};
    stored.times[{10, 4}] = {1, 100, 0, 700};
    function.known->know({stored});
    CHECK(function.expected_block_ns(shape, 100) == 651);  // 7168 for eleven rounds
    CHECK(function.expected_block_ns(shape, 0) == 0);
    function.block_ns = 50;
    CHECK(function.expected_block_ns(shape, 100) == 50);  // its input may be another
}
