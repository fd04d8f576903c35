#include "runtime/dispatch/gpu_time.h"

#include <catch2/catch.hpp>

using namespace smt::runtime;
using namespace std::chrono_literals;
using dispatch::Company;
using dispatch::GpuTime;
using dispatch::LaunchTime;
using dispatch::LaunchTimes;
using dispatch::Received;

namespace {

const schedule::TimePoint kStart = schedule::TimePoint{} + 1h;

int64_t ns(schedule::Duration of) { return std::chrono::nanoseconds(of).count(); }

// Two tenants with a stream each.
struct Two {
    Company company;
    Received one, two;
    GpuTime first{company, one}, second{company, two};
    LaunchTime kernel, other;
};

}  // namespace

TEST_CASE("GPU time: a tenant alone receives the time in which it has work", "[dispatch]") {
    Two t;
    t.first.settle(true, kStart);
    t.first.over(t.kernel, 10, true);
    t.first.settle(true, kStart + 100us);
    CHECK(t.one.ns == ns(100us));
    CHECK(t.kernel.of(10) == Approx(100'000));
    CHECK(t.first.receiving(&t.kernel, 10, kStart + 130us) == 30us);
    CHECK(t.first.receiving(&t.kernel, 1, kStart + 130us) == 10us);  // no more than it takes
    t.first.over(t.kernel, 10, true);
    t.first.settle(false, kStart + 200us);
    CHECK(t.first.receiving(nullptr, 0, kStart + 300us) == 0us);
    t.first.settle(true, kStart + 900us);  // idle time does not count
    t.first.over(t.kernel, 10, true);
    t.first.settle(false, kStart + 1000us);
    CHECK(t.one.ns == ns(300us));
}

TEST_CASE("GPU time: beside others a launch counts with what it takes alone", "[dispatch]") {
    Two t;
    t.first.settle(true, kStart);
    t.first.over(t.kernel, 10, true);
    t.first.settle(true, kStart + 100us);
    t.second.settle(true, kStart + 100us);
    t.first.over(t.kernel, 10, true);
    t.first.settle(true, kStart + 280us);
    t.second.over(t.other, 1, true);
    t.second.settle(false, kStart + 280us);
    CHECK(t.one.ns == ns(200us));
    CHECK(t.one.guessed_ns == 0);
    CHECK(t.two.guessed_ns == ns(90us));
    CHECK(t.two.ns == ns(90us));  // never seen alone: half of the time
    CHECK(t.kernel.of(10) == Approx(100'000));
    CHECK(t.other.of(1) == 0);
    // Alone again, it is learnt anew.
    t.first.over(t.kernel, 10, true);
    t.first.settle(false, kStart + 380us);
    CHECK(t.one.ns == ns(300us));
}

TEST_CASE("GPU time: company for a part of a launch is company", "[dispatch]") {
    Two t;
    t.first.settle(true, kStart);
    t.second.settle(true, kStart + 10us);
    t.second.over(t.other, 1, true);
    t.second.settle(false, kStart + 20us);
    t.first.over(t.kernel, 1, true);
    t.first.settle(false, kStart + 100us);
    CHECK(t.kernel.of(1) == 0);
    CHECK(t.one.ns == ns(95us));
    CHECK(t.two.ns == ns(5us));
}

TEST_CASE("GPU time: a tenant's streams divide its time", "[dispatch]") {
    Company company;
    Received one;
    GpuTime first(company, one), second(company, one);
    LaunchTime kernel;
    first.settle(true, kStart);
    second.settle(true, kStart);
    first.over(kernel, 1, true);
    first.settle(false, kStart + 100us);
    second.over(kernel, 1, true);
    second.settle(false, kStart + 100us);
    CHECK(one.ns == ns(100us));
}

TEST_CASE("GPU time: launches that are over at once divide the time as they were expected to", "[dispatch]") {
    Two t;
    const auto alone = [&](LaunchTime& kernel, schedule::Duration from, schedule::Duration to) {
        t.first.settle(true, kStart + from);
        t.first.over(kernel, 1, true);
        t.first.settle(false, kStart + to);
    };
    alone(t.kernel, 0us, 30us);
    alone(t.other, 100us, 110us);
    t.first.settle(true, kStart + 200us);
    t.first.over(t.kernel, 1, true);
    t.first.over(t.other, 1, true);
    t.first.settle(false, kStart + 280us);  // twice as long
    CHECK(t.kernel.of(1) == Approx(30'000 + 30'000 / 8));
    CHECK(t.other.of(1) == Approx(10'000 + 10'000 / 8));
}

TEST_CASE("GPU time: nothing is learnt from a launch that was stopped", "[dispatch]") {
    Two t;
    t.first.settle(true, kStart);
    t.first.over(t.kernel, 3, false);
    t.first.settle(false, kStart + 100us);
    CHECK(t.kernel.of(1) == 0);
    CHECK(t.one.ns == ns(100us));
}

TEST_CASE("GPU time: one shape of a kernel's launches says nothing about another", "[dispatch]") {
    Two t;
    LaunchTimes kernel;
    t.first.settle(true, kStart);
    t.first.over(kernel.of(1, 128), 1, true);
    t.first.settle(false, kStart + 5us);
    CHECK(kernel.of(1, 128).of(1) == Approx(5'000));
    CHECK(kernel.of(40'000, 128).of(40'000) == 0);
    CHECK(kernel.of(1, 256).of(1) == 0);
    kernel.forget();
    CHECK(kernel.of(1, 128).of(1) == 0);
}

TEST_CASE("GPU time: the shapes that are kept apart are bounded", "[dispatch]") {
    LaunchTimes kernel;
    for (uint64_t blocks = 1; blocks <= LaunchTimes::kMost; ++blocks) kernel.of(blocks, 64).learn(1, 10);
    kernel.of(5'000, 64).learn(5'000, 50'000);
    CHECK(kernel.of(6'000, 64).of(6'000) == Approx(60'000));
    CHECK(kernel.of(9'000, 64).of(9'000) == 0);
    CHECK(kernel.of(1, 64).of(1) == Approx(10));
}

TEST_CASE("GPU time: unmanaged launches count by their key", "[dispatch]") {
    Two t;
    t.first.settle(true, kStart);
    t.first.over_unmanaged(7);
    t.first.settle(true, kStart + 50us);
    t.second.settle(true, kStart + 50us);
    t.first.over_unmanaged(7);
    t.first.settle(true, kStart + 150us);
    CHECK(t.one.ns == ns(100us));
    t.first.over_unmanaged(8);
    t.first.settle(false, kStart + 250us);
    t.second.settle(false, kStart + 250us);
    CHECK(t.one.ns == ns(150us));
}

TEST_CASE("GPU time: what is learnt is corrected by what launches take in long times alone", "[dispatch]") {
    Two t;
    schedule::TimePoint now = kStart;
    const auto run = [&](schedule::Duration takes, int times) {  // launches without a gap
        for (int i = 0; i < times; ++i) {
            t.kernel.set_block_ps(108'000'000);  // 108 us, whatever they take
            t.first.over(t.kernel, 1, true);
            t.first.settle(true, now += takes);
        }
    };
    t.first.settle(true, now);
    run(100us, 100);
    CHECK(t.one.correction.windows() == 0);  // the first one does not count
    run(100us, 1);
    CHECK(t.one.correction.windows() == 1);
    CHECK(t.one.correction.factor() == Approx(100.0 / 108));
    run(120us, 84);  // another measurement has half of the weight
    CHECK(t.one.correction.factor() == Approx((100.0 + 120.0) / 2 / 108));
    const double factor = t.one.correction.factor();
    const int64_t before = t.one.ns;
    t.second.settle(true, now);
    t.kernel.set_block_ps(100'000'000);
    t.first.over(t.kernel, 1, true);
    t.first.settle(true, now += 200us);
    CHECK(static_cast<double>(t.one.ns - before) == Approx(100'000 * factor).epsilon(0.001));
    t.second.settle(false, now);
    CHECK(t.two.correction.windows() == 0);
}

TEST_CASE("GPU time: work behind an idle time, or behind company, corrects nothing", "[dispatch]") {
    Two t;
    schedule::TimePoint now = kStart;
    for (int i = 0; i < 400; ++i) {
        t.kernel.set_block_ps(50'000'000);
        t.first.settle(true, now);
        t.first.over(t.kernel, 1, true);
        t.first.settle(false, now += 100us);
    }
    t.first.settle(true, now);
    for (int i = 0; i < 400; ++i) {
        t.kernel.set_block_ps(50'000'000);
        t.second.settle(true, now);
        t.second.settle(false, now += 1us);
        t.first.over(t.kernel, 1, true);
        t.first.settle(true, now += 99us);
    }
    CHECK(t.one.correction.windows() == 0);
    CHECK(t.one.correction.factor() == 1);
}

TEST_CASE("GPU time: a correction is bounded", "[dispatch]") {
    dispatch::Correction correction;
    correction.measured(1e6, 9e6);
    CHECK(correction.factor() == dispatch::Correction::kMost);
    for (int i = 0; i < 100; ++i) correction.measured(9e6, 1e6);
    CHECK(correction.factor() == Approx(dispatch::Correction::kLeast));
}

TEST_CASE("GPU time: whether a stream was at work by itself", "[dispatch]") {
    Company company;
    Received one, two;
    GpuTime first(company, one), own(company, one), other(company, two);
    first.settle(true, kStart);
    CHECK(company.by_itself(one.part, kStart, kStart + 10us));
    other.settle(true, kStart + 20us);
    other.settle(false, kStart + 30us);
    CHECK_FALSE(company.by_itself(one.part, kStart, kStart + 40us));
    CHECK(company.by_itself(one.part, kStart + 30us, kStart + 40us));
    own.settle(true, kStart + 50us);  // another stream of the tenant
    own.settle(false, kStart + 60us);
    CHECK_FALSE(company.by_itself(one.part, kStart + 40us, kStart + 70us));
    CHECK(company.by_itself(one.part, kStart + 60us, kStart + 70us));
    first.settle(false, kStart + 80us);
}
