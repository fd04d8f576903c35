// What two kernels get done while both are at work.
#include "runtime/dispatch/common_time.h"

#include <catch2/catch.hpp>
#include <functional>

using namespace smt::runtime;
using namespace std::chrono_literals;
using dispatch::CommonTime;

namespace {

constexpr auto kLook = 100us;
constexpr schedule::TimePoint kBegin = schedule::TimePoint{} + 1h;

using At = std::function<CommonTime::Seen(schedule::Duration)>;

// Looks every 100 us from one time until another.
void look(CommonTime& time, schedule::Duration from, schedule::Duration until, const At& first, const At& second) {
    for (schedule::Duration at = from; at < until; at += kLook) time.look(kBegin + at, {first(at), second(at)});
}

// So many blocks a millisecond, one after the other; 10 at once.
At steady(uint64_t each_ms, uint64_t launch = 1) {
    return [=](schedule::Duration at) { return CommonTime::Seen{true, launch, static_cast<uint64_t>(at / 1us) * each_ms / 1000, 10}; };
}
// All of a round begin within a fifth of its time.
At in_step(schedule::Duration round, uint64_t blocks) {
    return [=](schedule::Duration at) {
        const double begun = std::min(1.0, 5 * static_cast<double>((at % round).count()) / static_cast<double>(round.count()));
        return CommonTime::Seen{true, 1, blocks * static_cast<uint64_t>(at / round) + static_cast<uint64_t>(begun * static_cast<double>(blocks)), blocks};
    };
}
CommonTime::Seen gone(schedule::Duration) { return {}; }

double each_ms(const CommonTime::Done& done) { return static_cast<double>(done.blocks) / std::chrono::duration<double, std::milli>(done.time).count(); }

}  // namespace

TEST_CASE("common time is that in which both are at work, from when they have settled", "[pairs]") {
    CommonTime time;
    look(time, 0ms, 10ms, steady(1000), gone);
    CHECK(time.done()[0].blocks == 0);
    look(time, 10ms, 20ms, steady(1000), steady(400));
    const auto done = time.done();
    CHECK(each_ms(done[0]) == Approx(1000).epsilon(0.01));
    CHECK(each_ms(done[1]) == Approx(400).epsilon(0.01));
    for (const CommonTime::Done& each : done) CHECK((each.time > 9ms && each.time <= 9800us));
    look(time, 20ms, 60ms, gone, steady(4000));   // faster alone
    CHECK(time.done()[1].blocks == done[1].blocks);
    CHECK(time.done()[1].time == done[1].time);
}

TEST_CASE("a gap between two launches is not counted, nor is what runs on into the next one", "[pairs]") {
    CommonTime time;
    // Alone the other one is five times as fast; its round of 10 blocks takes 1 ms beside the first.
    const auto beside = [](schedule::Duration at) {
        const auto cycles = static_cast<uint64_t>(at / 12ms);
        const schedule::Duration in = at % 12ms;
        const auto together = static_cast<uint64_t>(std::min<schedule::Duration>(in, 10ms) / 1us), alone = static_cast<uint64_t>(std::max<schedule::Duration>(in - 10ms, 0ms) / 1us);
        return CommonTime::Seen{true, 1, cycles * 200 + (together + 5 * alone) / 100, 10};
    };
    const auto launches = [](schedule::Duration at) {
        if (at % 12ms >= 10ms) return CommonTime::Seen{};
        return CommonTime::Seen{true, 1 + static_cast<uint64_t>(at / 12ms), static_cast<uint64_t>(at % 12ms / 1us), 10};
    };
    look(time, 0ms, 120ms, launches, beside);
    const auto done = time.done();
    CHECK(each_ms(done[1]) == Approx(10).epsilon(0.02));   // 16.7 with the gaps
    CHECK(each_ms(done[0]) == Approx(1000).epsilon(0.02));
    CHECK(done[1].time > 70ms);
    CHECK(done[1].time < 90ms);   // a round is waited for after each gap
}

TEST_CASE("blocks in step are counted by whole rounds", "[pairs]") {
    // Some nine rounds of 3 ms, wherever it begins and ends: counted until the last look it would be up to one more or less.
    for (schedule::Duration late = 0ms; late < 3ms; late += 200us) {
        CommonTime time;
        look(time, 1300us, 29ms + late, in_step(3ms, 400), steady(1000));
        CHECK(each_ms(time.done()[0]) == Approx(400 / 3.0).epsilon(0.01));
        CHECK(time.done()[0].rounds >= 7);
    }
    // Of less than a round nothing is said.
    CommonTime short_time;
    look(short_time, 1ms, 30ms, in_step(50ms, 40), steady(1000));
    CHECK(short_time.done()[0].rounds == 0);
    CHECK(short_time.done()[0].time == schedule::Duration::zero());
    CHECK(short_time.done()[1].time > 20ms);   // after 5 ms a round is not waited for any more
}

TEST_CASE("what is seen is old until it changes", "[pairs]") {
    // A look every 5 us, tickets every 100.
    CommonTime time;
    const At old = [](schedule::Duration at) { return steady(1000)(at - at % 100us); };
    for (schedule::Duration at = 0ms; at < 2ms; at += 5us) time.look(kBegin + at, {old(at + 35us), old(at)});
    for (const CommonTime::Done& each : time.done()) CHECK(each_ms(each) == Approx(1000).epsilon(0.001));
}

TEST_CASE("another launch, or somebody else at work, begins a time anew", "[pairs]") {
    CommonTime time;
    look(time, 0ms, 10ms, steady(1000, 1), steady(500));
    const uint64_t before = time.done()[0].blocks;
    // Blocks are counted from 0 again; it is seen in the next look, without a gap.
    look(time, 10ms, 10200us, [](schedule::Duration) { return CommonTime::Seen{true, 2, 0, 10}; }, steady(500));
    CHECK(time.done()[0].blocks == before);
    look(time, 10200us, 20ms, [](schedule::Duration at) { return CommonTime::Seen{true, 2, static_cast<uint64_t>((at - 10200us) / 1us), 10}; }, steady(500));
    CHECK(each_ms(time.done()[0]) == Approx(1000).epsilon(0.01));
    time.interrupt();
    const auto sums = time.done();
    look(time, 20ms, 20200us, steady(1000, 3), steady(500));
    CHECK(time.done()[0].blocks == sums[0].blocks);   // not settled
    // What is seen may be older than what was.
    look(time, 21ms, 25ms, steady(1000, 3), steady(500));
    look(time, 22ms, 23ms, steady(1000, 3), steady(500));
    CHECK(time.done()[0].blocks < sums[0].blocks + 10'000);
    time.clear();
    CHECK(time.done()[0].blocks == 0);
}
