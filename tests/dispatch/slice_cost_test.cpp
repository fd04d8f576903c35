#include "runtime/dispatch/slice_cost.h"

#include <catch2/catch.hpp>

using smt::runtime::dispatch::SliceCost;

TEST_CASE("a slice costs what it takes beyond the work of its workers", "[dispatch]") {
    SliceCost cost;
    CHECK_FALSE(cost.next({.launch = 1, .began = 1000, .ended = 2000, .at_work = 2000, .places = 2}));
    // 40 from the end of the one before to its begin; then 100, in which one worker is idle for 20.
    CHECK(cost.next({.launch = 1, .began = 2040, .ended = 2140, .at_work = 180, .places = 2}) == 50u);
    // Workers that came one after the other in the same place.
    CHECK(cost.next({.launch = 1, .began = 2140, .ended = 2240, .at_work = 200, .places = 2}) == 0u);
    // Clocks of two multiprocessors differ: no less than nothing.
    CHECK(cost.next({.launch = 1, .began = 2240, .ended = 2340, .at_work = 210, .places = 2}) == 0u);
}

TEST_CASE("only a slice that follows another of its launch at once says what slices cost", "[dispatch]") {
    SliceCost cost;
    const uint64_t late = 3000 + SliceCost::kLongestGapNs;
    cost.next({.launch = 1, .began = 1000, .ended = 2000, .at_work = 2000, .places = 2});
    CHECK_FALSE(cost.next({.launch = 2, .began = 2010, .ended = 3000, .at_work = 2000, .places = 2}));
    CHECK_FALSE(
        cost.next({.launch = 2, .began = late + 1, .ended = late + 100, .at_work = 200, .places = 2}));
    CHECK(cost.next({.launch = 2, .began = late + 110, .ended = late + 210, .at_work = 200, .places = 2}) ==
          10u);
    CHECK_FALSE(
        cost.next({.launch = 2, .began = late + 220, .ended = late + 300, .at_work = 1, .places = 0}));
}
