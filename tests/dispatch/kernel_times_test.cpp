// GPU time of kernels, as the host sees launches end.
#include "runtime/dispatch/kernel_times.h"

#include <catch2/catch.hpp>
#include <map>

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;
using Which = KernelTimes::Which;
const schedule::TimePoint kBegin = schedule::TimePoint{} + 1h;
constexpr Which kOne{1, 7}, kTwo{2, 7};

std::map<Which, KernelTimes::Sum> report(KernelTimes& times) {
    std::map<Which, KernelTimes::Sum> all;
    times.report([&](const Which& which, const KernelTimes::Sum& sum) { all[which] = sum; });
    return all;
}

}  // namespace

TEST_CASE("kernel times: from the begin, or the end of the launch in front, to the end", "[kernel times]") {
    KernelTimes times;
    times.settle(true, kBegin);
    times.settle(true, kBegin + 1us);  // no news
    times.over(kOne, false, 0, true);
    times.settle(true, kBegin + 10us);
    times.over(kTwo, true, 0, true);
    times.settle(false, kBegin + 15us);
    times.settle(true, kBegin + 100us);  // idle in between
    times.over(kOne, false, 0, true);
    times.settle(false, kBegin + 120us);
    auto sums = report(times);
    CHECK(sums[kOne].ns == 30'000);
    CHECK(sums[kOne].one_wave_ns == 0);
    CHECK(sums[kOne].launches == 2);
    CHECK(sums[kTwo].ns == 5'000);
    CHECK(sums[kTwo].one_wave_ns == 5'000);
    CHECK(report(times).empty());  // nothing has changed
}

TEST_CASE("kernel times: what is seen at once divides the time as it takes alone", "[kernel times]") {
    KernelTimes times;
    times.settle(true, kBegin);
    times.over(kOne, false, 100, true);
    times.over(kTwo, false, 300, true);
    times.settle(true, kBegin + 8us);
    auto sums = report(times);
    CHECK(sums[kOne].ns == 2'000);
    CHECK(sums[kTwo].ns == 6'000);
    times.over(kOne, false, 0, true);  // not known: as the others
    times.over(kTwo, false, 300, true);
    times.settle(false, kBegin + 10us);
    CHECK(report(times)[kOne].ns == 3'000);
}

TEST_CASE("kernel times: a stopped launch counts once, and what it ran before", "[kernel times]") {
    KernelTimes times;
    times.settle(true, kBegin);
    times.over(kOne, false, 0, false);
    times.settle(false, kBegin + 10us);
    times.settle(true, kBegin + 50us);
    times.over(kOne, false, 0, true);
    times.settle(false, kBegin + 55us);
    auto sums = report(times);
    CHECK(sums[kOne].ns == 15'000);
    CHECK(sums[kOne].launches == 1);
}

}  // namespace smt::runtime::dispatch
