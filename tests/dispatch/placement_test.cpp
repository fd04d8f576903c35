#include "runtime/dispatch/placement.h"

#include <catch2/catch.hpp>

using smt::runtime::dispatch::Placement;
using smt::runtime::dispatch::QuotaTable;

namespace {

constexpr uint32_t kLaunch = 7;

smt::Mapping worker(uint32_t sm, uint64_t began, uint64_t ended, uint32_t blocks, uint32_t launch = kLaunch) {
    return {launch, sm, blocks, 0, 0, began, ended};
}

Placement::Sums sums_of(const QuotaTable& quotas, const std::vector<smt::Mapping>& workers) {
    Placement placement;
    placement.begin(kLaunch, quotas);
    placement.add(workers, 0);
    placement.end();
    return placement.sums();
}

}  // namespace

TEST_CASE("workers within their quotas are where they should be", "[dispatch]") {
    const Placement::Sums sums = sums_of(
        {0, 2, smt::kNoQuota}, {worker(1, 100, 200, 3), worker(1, 100, 300, 4), worker(1, 200, 400, 5),
                                worker(2, 1, 9, 1), worker(2, 1, 9, 1), worker(2, 1, 9, 1)});
    CHECK(sums.tables == 1);
    CHECK(sums.workers == 6);
    CHECK(sums.blocks == 15);
    CHECK(sums.astray == 0);
    CHECK(sums.fullest == 2);  // where there is a quota
    CHECK(sums.beyond == 0);
}

TEST_CASE("a worker beyond the quota is found, and its blocks", "[dispatch]") {
    const Placement::Sums sums = sums_of({1, 2}, {worker(1, 100, 200, 3), worker(1, 150, 300, 4),
                                                  worker(1, 199, 250, 50), worker(1, 240, 400, 5)});
    CHECK(sums.astray == 55);
    CHECK(sums.fullest == 3);
    CHECK(sums.beyond == 1);
    CHECK(sums_of({0}, {worker(0, 1, 2, 9)}).astray == 9);
    CHECK(sums_of({1}, {worker(1, 1, 2, 9)}).astray == 9);  // a multiprocessor that there is not
}

TEST_CASE("runs count one by one, unless their table was changed", "[dispatch]") {
    Placement placement;
    placement.begin(kLaunch, {1});
    placement.add({worker(0, 1, 5, 1)}, 2);
    placement.add({worker(0, 2, 6, 1, kLaunch - 1)}, 1);  // another launch's
    placement.end();
    placement.add({worker(0, 1, 5, 1)}, 4);  // of a launch that passes_through
    placement.begin(kLaunch + 1, {1});
    placement.add({worker(0, 1, 5, 1, kLaunch + 1), worker(0, 1, 5, 1, kLaunch + 1)}, 0);
    placement.change();
    placement.end();
    CHECK(placement.sums().tables == 1);
    CHECK(placement.sums().workers == 1);
    CHECK(placement.sums().lost == 3);
    CHECK(placement.sums().astray == 0);
}
