#include "profiler/models/utilization.h"

#include <array>
#include <catch2/catch.hpp>

namespace smt::profiler::models {
namespace {

TEST_CASE("PUR and MUR are shares of what the device could do", "[utilization]") {
    Counters counters;
    counters.nanoseconds = 10'000;  // 10,000 cycles at 1 GHz
    counters.instructions = 3'000'000;
    counters.dram_reads = 50'000;
    counters.dram_writes = 30'000;
    const Utilization found = utilization(counters, {1e9, 600, 80});
    CHECK(found.pur == Approx(0.5));
    CHECK(found.mur == Approx(0.1));
    CHECK(utilization(counters, {2e9, 600, 80}).pur == Approx(0.25));
    CHECK(utilization({}, {1e9, 600, 80}).pur == 0);
    CHECK(utilization(counters, {}).mur == 0);
}

TEST_CASE("ratios of counters", "[utilization]") {
    Counters counters;
    counters.blocks = 50;
    counters.instructions = 1000;
    counters.memory_instructions = 200;
    counters.uncoalesced_instructions = 30;
    CHECK(memory_ratio(counters) == Approx(0.2));
    CHECK(uncoalesced_ratio(counters) == Approx(0.15));
    CHECK(instructions_per_block(counters) == Approx(20));
    CHECK(memory_ratio({}) == 0);
    CHECK(uncoalesced_ratio({}) == 0);
    CHECK(instructions_per_block({}) == 0);
}

TEST_CASE("kernels are too alike if both ratios are close", "[utilization]") {
    CHECK(too_alike({0.3, 0.10}, {0.6, 0.15}));
    CHECK_FALSE(too_alike({0.1, 0.10}, {0.6, 0.15}));            // one computes more
    CHECK_FALSE(too_alike({0.3, 0.10}, {0.6, 0.25}));            // one loads more
    CHECK_FALSE(too_alike({0.25, 0.0}, {0.5, 0.0}, {0.25, 1}));  // lower than the threshold, not at it
    CHECK(too_alike({0.25, 0.0}, {0.5, 0.0}, {0.26, 1}));
}

TEST_CASE("the paper's kernels are pruned as in its table 6", "[utilization]") {
    // Table 4, C2050: PC, SAD, SPMV, ST, MM, MRIQ, BS, TEA.
    constexpr std::array<Utilization, 8> kernels{{{0.0096, 0.1404},
                                                  {0.1498, 0.1120},
                                                  {0.3464, 0.003},
                                                  {0.3629, 0.1156},
                                                  {0.5804, 0.0161},
                                                  {0.8539, 0.0002},
                                                  {0.8642, 0.0604},
                                                  {0.9978, 0.0196}}};
    // Table 6: a row for each alpha_m, a column for each alpha_p from 0.1 to 1.0. Its further rows differ by
    // up to 3 in some columns from what the rounded ratios of table 4 give.
    constexpr double memory[] = {0.015, 0.03, 0.045};
    constexpr int pruned[3][10] = {
        {0, 0, 2, 2, 3, 4, 4, 4, 4, 4}, {0, 2, 5, 6, 7, 8, 9, 9, 9, 9}, {0, 3, 7, 8, 9, 10, 11, 11, 11, 11}};
    for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 10; ++column) {
            int count = 0;
            for (size_t i = 0; i < kernels.size(); ++i) {
                for (size_t j = 0; j < i; ++j)
                    count += too_alike(kernels[i], kernels[j], {0.1 * (column + 1), memory[row]});
            }
            INFO("alpha_m " << memory[row] << ", alpha_p " << 0.1 * (column + 1));
            CHECK(count == pruned[row][column]);
        }
    }
}

}  // namespace
}  // namespace smt::profiler::models
