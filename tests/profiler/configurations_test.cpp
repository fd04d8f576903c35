#include "profiler/models/configurations.h"

#include <catch2/catch.hpp>

namespace smt::profiler::models {
namespace {

using Points = std::vector<Configuration>;

TEST_CASE("configurations are sorted by CTAs and pruned to those that are faster", "[configurations]") {
    CHECK(prune({{1, 80}, {2, 40}, {4, 40}, {3, 45}, {6, 30}}) == Points{{1, 80}, {2, 40}, {6, 30}});
    CHECK(prune({{3, 10}, {2, 20}, {1, 30}}) == Points{{1, 30}, {2, 20}, {3, 10}});
    CHECK(prune({{1, 10}, {2, 20}, {3, 30}}) == Points{{1, 10}});
    CHECK(prune({}).empty());
}

TEST_CASE("of a configuration that was measured twice the faster counts", "[configurations]") {
    CHECK(prune({{1, 80}, {2, 90}, {2, 60}, {1, 70}}) == Points{{1, 70}, {2, 60}});
}

TEST_CASE("throughput with fewer CTAs, of that with the most: along a line between those that were measured",
          "[configurations]") {
    CHECK(relative_throughput({{2, 40}, {4, 20}, {6, 25}}, 6) ==
          std::vector<double>{0.3125, 0.625, 0.9375, 1.25, 1.125, 1});
    CHECK(relative_throughput({{1, 80}, {2, 40}, {8, 1}}, 2) ==
          std::vector<double>{0.5, 1});  // eight cannot be had
    CHECK(relative_throughput({{1, 80}, {2, 40}}, 3).empty());
    CHECK(relative_throughput({}, 3).empty());
    for (const Points& disorder : {Points{{2, 40}, {1, 80}, {3, 30}},
                                   {{1, 80}, {1, 70}, {3, 30}},
                                   {{1 << 30, 1}, {3, 30}},
                                   {{-5, 1}, {3, 30}}})
        CHECK(relative_throughput(disorder, 3).empty());
    CHECK(relative_throughput({}, 0).empty());
}

TEST_CASE("remaining time goes by blocks (equation 1)", "[configurations]") {
    CHECK(remaining_time(800, 100, 0) == 800);
    CHECK(remaining_time(800, 100, 25) == 600);
    CHECK(remaining_time(800, 100, 100) == 0);
    CHECK(remaining_time(800, 100, 101) == 0);
    CHECK(remaining_time(800, 0, 0) == 0);
}

}  // namespace
}  // namespace smt::profiler::models
