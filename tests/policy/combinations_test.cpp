// With how many CTAs of each two kernels share a multiprocessor.
#include "runtime/schedule/combinations.h"

#include "tests/policy/snapshots.h"

using namespace smt::tests;

namespace {

Kernel sized(const Resources& cta) { return kernel(1, 1000, cta); }

}  // namespace

TEST_CASE("combinations are full, with one CTA of each at least", "[policy]") {
    using Blocks = std::vector<models::Blocks>;
    const Device sms = device(132);
    const Kernel quarter = sized(nth_of(kSm, 4)), half = sized(nth_of(kSm, 2)), all = sized(kSm);
    CHECK(combinations(quarter, quarter, sms) == Blocks{{1, 3}, {2, 2}, {3, 1}});
    CHECK(combinations(quarter, half, sms) ==
          Blocks{{2, 1}});  // beside one of the half, and none of it beside three
    CHECK(combinations(half, quarter, sms) == Blocks{{1, 2}});
    CHECK(combinations(all, quarter, sms).empty());
    // One takes threads, the other one shared memory: all of both fit.
    const Kernel threads = sized({480, 0, 1024, 15, 1}), memory = sized({32, 0, 76 << 10, 1, 1});
    CHECK(combinations(threads, memory, sms) == Blocks{{4, 2}});
    Kernel two = threads;
    two.ctas_per_sm = 2;  // says the driver
    CHECK(combinations(two, memory, sms) == Blocks{{2, 2}});
    for (const models::Blocks& each : combinations(threads, memory, sms))
        CHECK(fit_together(each, threads, memory, sms));
    CHECK_FALSE(fit_together({4, 3}, threads, memory, sms));
    CHECK_FALSE(fit_together({3, 2}, two, memory, sms));
}

TEST_CASE("of many combinations eight are taken, the ends among them", "[policy]") {
    const Device sms = device(132);
    const auto found = combinations(sized(nth_of(kSm, 32)), sized(nth_of(kSm, 32)), sms);
    REQUIRE(found.size() == kMostCombinations);
    CHECK(found.front() == models::Blocks{1, 31});
    CHECK(found.back() == models::Blocks{31, 1});
}
