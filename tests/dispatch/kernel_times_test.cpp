// GPU time of kernels, as the host sees launches end.
#include "runtime/dispatch/kernel_times.h"

#include <catch2/catch.hpp>
#include <map>

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;
using Which = KernelTimes::Which;
const schedule::TimePoint kTimesBegin = schedule::TimePoint{} + 1h;
constexpr Which kFirstKernel{1, 7}, kSecondKernel{2, 7};

std::map<Which, KernelTimes::Sum> reported(KernelTimes& times) {
    std::map<Which, KernelTimes::Sum> all;
    times.report([&](const Which& which, const KernelTimes::Sum& sum) { all[which] = sum; });
    return all;
}

}  // namespace

TEST_CASE("kernel times: from the begin, or the end of the launch in front, to the end", "[kernel times]") {
    KernelTimes times;
    times.settle(true, kTimesBegin);
    times.settle(true, kTimesBegin + 1us);  // no news
    times.over(kFirstKernel, false, 0, true);
    times.settle(true, kTimesBegin + 10us);
    times.over(kSecondKernel, true, 0, true);
    times.settle(false, kTimesBegin + 15us);
    times.settle(true, kTimesBegin + 100us);  // idle in between
    times.over(kFirstKernel, false, 0, true);
    times.settle(false, kTimesBegin + 120us);
    auto sums = reported(times);
    CHECK(sums[kFirstKernel].ns == 30'000);
    CHECK(sums[kFirstKernel].one_wave_ns == 0);
    CHECK(sums[kFirstKernel].launches == 2);
    CHECK(sums[kSecondKernel].ns == 5'000);
    CHECK(sums[kSecondKernel].one_wave_ns == 5'000);
    CHECK(reported(times).empty());  // nothing has changed
}

TEST_CASE("kernel times: what is seen at once divides the time as it takes alone", "[kernel times]") {
    KernelTimes times;
    times.settle(true, kTimesBegin);
    times.over(kFirstKernel, false, 100, true);
    times.over(kSecondKernel, false, 300, true);
    times.settle(true, kTimesBegin + 8us);
    auto sums = reported(times);
    CHECK(sums[kFirstKernel].ns == 2'000);
    CHECK(sums[kSecondKernel].ns == 6'000);
    times.over(kFirstKernel, false, 0, true);  // not known: as the others
    times.over(kSecondKernel, false, 300, true);
    times.settle(false, kTimesBegin + 10us);
    CHECK(reported(times)[kFirstKernel].ns == 3'000);
}

TEST_CASE("kernel times: a stopped launch counts once, and what it ran before", "[kernel times]") {
    KernelTimes times;
    times.settle(true, kTimesBegin);
    times.over(kFirstKernel, false, 0, false);
    times.settle(false, kTimesBegin + 10us);
    times.settle(true, kTimesBegin + 50us);
    times.over(kFirstKernel, false, 0, true);
    times.settle(false, kTimesBegin + 55us);
    auto sums = reported(times);
    CHECK(sums[kFirstKernel].ns == 15'000);
    CHECK(sums[kFirstKernel].launches == 1);
}

}  // namespace smt::runtime::dispatch
