#include "runtime/profiles/plan.h"

#include <catch2/catch.hpp>
#include <set>

using namespace smt::runtime::profiles;
using smt::profiler::Placement;

TEST_CASE("the plan of a sweep: curves on all and on one multiprocessor, and doubling", "[plan]") {
    const std::vector<Placement> plan = placements(12, 3);
    CHECK(plan ==
          std::vector<Placement>{{12, 3}, {12, 2}, {12, 1}, {1, 3}, {1, 2}, {1, 1}, {2, 3}, {4, 3}, {8, 3}});
}

TEST_CASE("the plan has each placement once", "[plan]") {
    CHECK(placements(1, 2) == std::vector<Placement>{{1, 2}, {1, 1}});
    CHECK(placements(8, 0).size() ==
          2);  // nothing fits, or it is unknown: the doubling alone, which cannot be carried out
    const std::vector<Placement> plan = placements(132, 16);
    CHECK(std::set<Placement>(plan.begin(), plan.end()).size() == plan.size());
    CHECK(plan.size() == 16 + 16 + 7);
}

TEST_CASE("a sample is eight rounds, more of short blocks, fewer of long ones", "[plan]") {
    CHECK(sample_blocks({132, 8}, 0) == 8 * 132 * 8);
    CHECK(sample_blocks({1, 1}, 500'000) == 8);
    CHECK(sample_blocks({1, 1}, 1'000'000) == 4);
    CHECK(sample_blocks({132, 8}, 60'000'000) == 2 * 132 * 8);
    CHECK(sample_blocks({1, 2}, 2'000) == 2 * 100);  // 100 rounds of 2 us
    CHECK(sample_blocks({0, 0}, 0) == 8);
}

TEST_CASE("what whole launches told need no slices", "[plan]") {
    CHECK(samples_wanted({12, 3}, 12, 3) == 1);
    CHECK(samples_wanted({12, 2}, 12, 3) == kSamples);
    CHECK(samples_wanted({1, 3}, 12, 3) == kSamples);
}
