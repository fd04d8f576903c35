#include "profiler/models/saturation.h"

#include <catch2/catch.hpp>
#include <vector>

namespace smt::profiler::models {
namespace {

using SaturationPoints = std::vector<SaturationPoint>;

// Multiprocessors, CTAs on each, throughput.
void check(const SaturationPoints& points, int sms, double loss, Footprint expected) {
    const auto found = footprint(points, sms, loss);
    REQUIRE(found);
    CHECK(found->sms == expected.sms);
    CHECK(found->ctas_per_sm == expected.ctas_per_sm);
    CHECK(found->throughput == Approx(expected.throughput));
}

TEST_CASE("the smallest product of multiprocessors and CTAs within the loss is taken", "[saturation]") {
    const SaturationPoints points{{1, 10, 600}, {2, 20, 1000}, {4, 25, 1000}};
    // 950 wanted: one CTA never gets there; two need 48 (96 CTAs), four 38 (152).
    check(points, 132, 0.05, {48, 2, 960});
    check(points, 132, 0, {50, 2, 1000});
    // 600 wanted: 60 of one CTA, 30 of two (60), 24 of four (96). Of 60 and 60 the fewer multiprocessors.
    check(points, 132, 0.4, {30, 2, 600});
    // All of them wanted, and a loss of everything.
    check(points, 40, 0, {40, 2, 1000});
    check(points, 132, 1, {1, 1, 10});
}

TEST_CASE("a kernel that memory saturates early needs few multiprocessors, one that computes all",
          "[saturation]") {
    check({{8, 60, 720}}, 132, 0.02, {12, 8, 720});
    check({{1, 1, 132}, {2, 2, 264}}, 132, 0, {132, 2, 264});
    check({{1, 1, 132}, {2, 2, 264}}, 132, 0.5, {66, 2, 132});
}

TEST_CASE("points without a throughput are left out", "[saturation]") {
    check({{0, 10, 100}, {2, 0, 500}, {3, 10, 50}}, 10, 0.95, {3, 3, 30});
    CHECK_FALSE(footprint(SaturationPoints{}, 132, 0.05));
    CHECK_FALSE(footprint(SaturationPoints{{1, 0, 0}}, 132, 0.05));
    CHECK_FALSE(footprint(SaturationPoints{{1, 10, 100}}, 0, 0.05));
}

}  // namespace
}  // namespace smt::profiler::models
