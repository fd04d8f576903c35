#include "profiler/models/co_schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tests/profiler/cost.h"

namespace smt::profiler::models {
namespace {

const Multiprocessor kSm{4, {.latency = 600, .requests_per_cycle = 0.56}};

// What one of kSm's schedulers has of its memory.
const Memory kPart{.latency = 600, .requests_per_cycle = 0.14};

TEST_CASE("co-scheduling profit (equation 1)", "[co_schedule]") {
    CHECK(profit({1, 1}, {0.5, 0.5}) == Approx(0));
    CHECK(profit({1, 1}, {0.75, 0.75}) == Approx(1.0 / 3));
    CHECK(profit({2, 0.5}, {1.5, 0.25}) == Approx(0.2));
    CHECK(profit({1, 1}, {0.4, 0.4}) == Approx(-0.25));
}

TEST_CASE("each scheduler has a part of each block's warps, and of memory", "[co_schedule]") {
    CHECK(alone(kSm, {.warps_per_block = 8, .memory_ratio = 0.05}, 3) ==
          Approx(4 * issued(kPart, {3, 2, 0.05})[0]));
    // A unit has a warp at least.
    CHECK(alone(kSm, {.warps_per_block = 1, .memory_ratio = 0.05}, 16) ==
          Approx(4 * issued(kPart, {4, 1, 0.05})[0]));
    // One warp has one scheduler.
    CHECK(alone(kSm, {.warps_per_block = 1, .memory_ratio = 0.05}, 1) ==
          Approx(issued(kSm.memory, {1, 1, 0.05})[0]));
    CHECK(alone(kSm, {.warps_per_block = 8, .memory_ratio = 0}, 1) == Approx(4));
}

TEST_CASE("a pair on one multiprocessor", "[co_schedule]") {
    const KernelModel loads{.warps_per_block = 8,
                            .most_blocks = 8,
                            .memory_ratio = 0.1,
                            .uncoalesced_ratio = 0,
                            .instructions_per_block = 3000};
    const KernelModel computes{.warps_per_block = 4,
                               .most_blocks = 6,
                               .memory_ratio = 0.01,
                               .uncoalesced_ratio = 0,
                               .instructions_per_block = 8000};
    const CoSchedule found = co_schedule(kSm, loads, computes, {3, 4}, 25);
    const auto together = issued(kPart, {3, 2, 0.1}, {4, 1, 0.01});
    CHECK(found.blocks == Blocks{3, 4});
    CHECK(found.together[0] == Approx(4 * together[0]));
    CHECK(found.together[1] == Approx(4 * together[1]));
    CHECK(found.alone[0] == Approx(4 * issued(kPart, {8, 2, 0.1})[0]));
    CHECK(found.alone[1] == Approx(4 * issued(kPart, {6, 1, 0.01})[0]));
    CHECK(found.profit == Approx(profit(found.alone, found.together)));
    CHECK(found.profit > 0.05);
    const double first = 3000 * 3 / found.together[0], second = 8000 * 4 / found.together[1];
    CHECK(found.imbalance == Approx(std::abs(first - second) / std::max(first, second)));
}

TEST_CASE(
    "where a kernel was measured with fewer blocks, the chain says how much less it gets done beside another",
    "[co_schedule]") {
    KernelModel loads{
        .warps_per_block = 8, .most_blocks = 8, .memory_ratio = 0.1, .instructions_per_block = 3000};
    const KernelModel computes{
        .warps_per_block = 4, .most_blocks = 6, .memory_ratio = 0.01, .instructions_per_block = 8000};
    const CoSchedule chain = co_schedule(kSm, loads, computes, {3, 4}, 25);
    loads.rates = {0.3, 0.6, 1.1, 1.2, 1.2, 1.1, 1, 1};
    const CoSchedule found = co_schedule(kSm, loads, computes, {3, 4}, 25);
    const double three = issued(kPart, {3, 2, 0.1})[0], beside = issued(kPart, {3, 2, 0.1}, {4, 1, 0.01})[0];
    CHECK(found.together[0] / found.alone[0] == Approx(1.1 * beside / three));
    CHECK(found.alone == chain.alone);
    CHECK(found.together[1] == chain.together[1]);
    CHECK(found.profit == Approx(profit(found.alone, found.together)));
    CHECK(found.cycles[0] == Approx(3000 * 3 / found.together[0]));
    loads.rates.pop_back();  // of another number of blocks
    CHECK(co_schedule(kSm, loads, computes, {3, 4}, 25).together == chain.together);
}

TEST_CASE("blocks are merged until the chain is small enough", "[co_schedule]") {
    const KernelModel first{.warps_per_block = 4, .most_blocks = 16, .memory_ratio = 0.1};
    const KernelModel second{.warps_per_block = 4, .most_blocks = 16, .memory_ratio = 0.02};
    const CoSchedule quick = co_schedule(kSm, first, second, {8, 8}, 25),
                     fine = co_schedule(kSm, first, second, {8, 8}, 81);
    CHECK(quick.together[0] == Approx(4 * issued(kPart, {4, 2, 0.1}, {4, 2, 0.02})[0]));
    CHECK(quick.alone[0] == Approx(4 * issued(kPart, {8, 2, 0.1})[0]));
    CHECK(fine.together[1] == Approx(4 * issued(kPart, {8, 1, 0.1}, {8, 1, 0.02})[1]));
    CHECK(fine.alone[1] == Approx(4 * issued(kPart, {16, 1, 0.02})[0]));
    // The kernel with more units gives way; one of each is the least.
    const CoSchedule least = co_schedule(kSm, first, second, {8, 2}, 1);
    CHECK(least.together[0] == Approx(4 * issued(kPart, {1, 8, 0.1}, {1, 2, 0.02})[0]));
    CHECK(co_schedule(kSm, first, second, {8, 2}, 15).together[0] ==
          Approx(4 * issued(kPart, {4, 2, 0.1}, {2, 1, 0.02})[0]));
}

TEST_CASE("two halves of one kernel bring nothing", "[co_schedule]") {
    for (const int blocks : {1, 2, 4, 8}) {
        for (const double ratio : {0.005, 0.05, 0.3}) {
            const KernelModel kernel{.warps_per_block = 4, .most_blocks = 2 * blocks, .memory_ratio = ratio};
            CHECK(co_schedule(kSm, kernel, kernel, {blocks, blocks}).profit == Approx(0).margin(1e-9));
        }
    }
}

// The mean of |CP with blocks as units - CP with warps as units|, over pairs of equally many blocks.
double mean_error(int warps_per_block) {
    constexpr double ratios[] = {0.005, 0.02, 0.05, 0.1, 0.3};
    double sum = 0;
    int pairs = 0;
    for (int blocks = 1; 2 * blocks * warps_per_block <= 64 && blocks <= 16; blocks *= 2) {
        for (const double one : ratios) {
            for (const double other : ratios) {
                if (other < one) continue;
                const auto profit_in = [&](int units, int warps, int states) {
                    return co_schedule(kSm, {warps, 2 * units, one}, {warps, 2 * units, other},
                                       {units, units}, states)
                        .profit;
                };
                sum += std::abs(profit_in(blocks, warps_per_block, kQuickStates) -
                                profit_in(blocks * warps_per_block, 1, 1000));
                ++pairs;
            }
        }
    }
    return sum / pairs;
}

TEST_CASE("blocks as units are nearly as good as warps, the smaller the better", "[co_schedule]") {
    CHECK(mean_error(1) < 0.002);
    CHECK(mean_error(4) < 0.004);
    CHECK(mean_error(8) < 0.01);
    CHECK(mean_error(16) < 0.02);
    CHECK(mean_error(32) < 0.04);
}

TEST_CASE("dividing the blocks by the schedulers would see a profit where there is none", "[co_schedule]") {
    // A block each of 8 warps: a quarter of a block, so one unit, with the 2 warps of each scheduler. Alone
    // both blocks are one unit of 4 warps.
    const Units half{1, 2, 0.005}, both{1, 4, 0.005};
    const auto together = issued(kPart, half, half);
    const double alone = issued(kPart, both)[0];
    CHECK(profit({alone, alone}, together) == Approx(0.17).margin(0.005));
    const KernelModel kernel{.warps_per_block = 8, .most_blocks = 2, .memory_ratio = 0.005};
    CHECK(co_schedule(kSm, kernel, kernel, {1, 1}).profit == Approx(0).margin(1e-9));
}

TEST_CASE("the balanced slices end together, as far as the candidates allow", "[co_schedule]") {
    const KernelModel first{.warps_per_block = 8,
                            .most_blocks = 8,
                            .memory_ratio = 0.005,
                            .uncoalesced_ratio = 0,
                            .instructions_per_block = 4000};
    const KernelModel second{.warps_per_block = 8,
                             .most_blocks = 8,
                             .memory_ratio = 0.02,
                             .uncoalesced_ratio = 0,
                             .instructions_per_block = 2300};
    const std::vector<Blocks> candidates{{1, 7}, {2, 6}, {3, 5}, {4, 4}, {5, 3}, {6, 2}, {7, 1}};
    const auto found = balanced(kSm, first, second, candidates);
    REQUIRE(found);
    CHECK(found->blocks != candidates.front());
    CHECK(found->blocks != candidates.back());
    for (const Blocks& each : candidates)
        CHECK(co_schedule(kSm, first, second, each).imbalance >= found->imbalance);
    const std::vector<Blocks> none{{0, 8}, {8, 0}};
    CHECK_FALSE(balanced(kSm, first, second, none));
    CHECK_FALSE(balanced(kSm, first, second, {}));
}

// Left out unless asked for: model_tests '[cost]'
TEST_CASE("what a co-schedule costs", "[.][cost]") {
    struct Case {
        int warps;
        Blocks blocks;
    };
    for (const auto& [warps, blocks] :
         {Case{8, {4, 4}}, Case{8, {2, 6}}, Case{4, {8, 8}}, Case{32, {1, 1}}}) {
        const KernelModel first{.warps_per_block = warps, .most_blocks = 64 / warps, .memory_ratio = 0.1};
        const KernelModel second{.warps_per_block = warps, .most_blocks = 64 / warps, .memory_ratio = 0.02};
        double sum = 0;
        const double cost = tests::cost_us([&] { sum += co_schedule(kSm, first, second, blocks).profit; });
        CHECK(sum != 0);
        std::printf("%d + %d blocks of %d warps: %.2f us\n", blocks[0], blocks[1], warps, cost);
    }
}

}  // namespace
}  // namespace smt::profiler::models
