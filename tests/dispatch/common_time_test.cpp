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
void look(CommonTime& time, schedule::Duration from, schedule::Duration until, const At& first,
          const At& second) {
    for (schedule::Duration at = from; at < until; at += kLook)
        time.look(kBegin + at, {first(at), second(at)});
}

// So many blocks a millisecond, one after the other; 10 at once.
At steady(uint64_t each_ms, uint64_t launch = 1) {
    return [=](schedule::Duration at) {
        return CommonTime::Seen{true, launch, static_cast<uint64_t>(at / 1us) * each_ms / 1000, 10};
    };
}
// All of a round begin within a fifth of its time.
At in_step(schedule::Duration round, uint64_t blocks) {
    return [=](schedule::Duration at) {
        const double begun =
            std::min(1.0, 5 * static_cast<double>((at % round).count()) / static_cast<double>(round.count()));
        return CommonTime::Seen{true, 1,
                                blocks * static_cast<uint64_t>(at / round) +
                                    static_cast<uint64_t>(begun * static_cast<double>(blocks)),
                                blocks};
    };
}
CommonTime::Seen gone(schedule::Duration) { return {}; }

double each_ms(const CommonTime& time, size_t side) {
    return time.done()[side].blocks / std::chrono::duration<double, std::milli>(time.time()).count();
}

}  // namespace

TEST_CASE("common time is that in which both are at work, from when they have settled", "[pairs]") {
    CommonTime time;
    look(time, 0ms, 10ms, steady(1000), gone);
    CHECK(time.done()[0].blocks == 0);
    look(time, 10ms, 20ms, steady(1000), steady(400));
    const auto done = time.done();
    const schedule::Duration counted = time.time();
    CHECK(each_ms(time, 0) == Approx(1000).epsilon(0.01));
    CHECK(each_ms(time, 1) == Approx(400).epsilon(0.01));
    CHECK((counted > 9ms && counted <= 9800us));
    look(time, 20ms, 60ms, gone, steady(4000));  // faster alone
    CHECK(time.done()[1].blocks == done[1].blocks);
    CHECK(time.time() == counted);
}

TEST_CASE("a gap between two launches is not counted, nor is what runs on into the next one", "[pairs]") {
    CommonTime time;
    // Alone the other one is five times as fast; its round of 10 blocks takes 1 ms beside the first.
    const auto beside = [](schedule::Duration at) {
        const auto cycles = static_cast<uint64_t>(at / 12ms);
        const schedule::Duration in = at % 12ms;
        const auto together = static_cast<uint64_t>(std::min<schedule::Duration>(in, 10ms) / 1us),
                   alone = static_cast<uint64_t>(std::max<schedule::Duration>(in - 10ms, 0ms) / 1us);
        return CommonTime::Seen{true, 1, cycles * 200 + (together + 5 * alone) / 100, 10};
    };
    const auto launches = [](schedule::Duration at) {
        if (at % 12ms >= 10ms) return CommonTime::Seen{};
        return CommonTime::Seen{true, 1 + static_cast<uint64_t>(at / 12ms),
                                static_cast<uint64_t>(at % 12ms / 1us), 10};
    };
    look(time, 0ms, 120ms, launches, beside);
    CHECK(each_ms(time, 1) == Approx(10).epsilon(0.02));  // 16.7 with the gaps
    CHECK(each_ms(time, 0) == Approx(1000).epsilon(0.02));
    CHECK(time.time() > 90ms);
    CHECK(time.time() < 98ms);
}

TEST_CASE("of blocks in step the part of a round is counted that lies in the stretch", "[pairs]") {
    // Some nine rounds of 3 ms, wherever it begins and ends: tickets would be up to one round more or less.
    for (schedule::Duration late = 0ms; late < 3ms; late += 200us) {
        CommonTime time;
        look(time, 1300us, 29ms + late, in_step(3ms, 400), steady(1000));
        CHECK(each_ms(time, 0) == Approx(400 / 3.0).epsilon(0.01));
        CHECK(each_ms(time, 1) == Approx(1000).epsilon(0.01));
        CHECK(
            time.done()[0].rounds ==
            Approx(each_ms(time, 0) / 400 * std::chrono::duration<double, std::milli>(time.time()).count()));
    }
    // Of a round of which no block was taken nothing is counted, but time passes.
    CommonTime short_time;
    look(short_time, 15ms, 44ms, in_step(50ms, 40), steady(1000));
    CHECK(short_time.time() == 0ms);
    short_time.interrupt();
    CHECK(short_time.done()[0].blocks == 0);
    CHECK(short_time.done()[1].blocks == Approx(28'600).epsilon(0.01));
    CHECK(short_time.time() > 28ms);
}

TEST_CASE("stretches that are shorter than a round count neither too much nor too little", "[pairs]") {
    // The other one has launches of 20 ms, of which 19.7 count, and a gap of 1 ms; rounds take 12, 18, or 50
    // ms.
    const auto launches = [](schedule::Duration at) {
        if (at % 21ms >= 20ms) return CommonTime::Seen{};
        return CommonTime::Seen{true, 1 + static_cast<uint64_t>(at / 21ms),
                                static_cast<uint64_t>(at % 21ms / 1us), 10};
    };
    for (const schedule::Duration round : {12ms, 18ms, 50ms}) {
        CommonTime time;
        look(time, 0ms, 20s, in_step(round, 400), launches);
        const double true_rate = 400 / std::chrono::duration<double, std::milli>(round).count();
        CHECK(each_ms(time, 0) == Approx(true_rate).epsilon(0.1));
        CHECK(each_ms(time, 1) == Approx(1000).epsilon(0.01));
    }
}

TEST_CASE("a measurement that stops when there is enough stops at no better time than any other", "[pairs]") {
    // Tickets are seen 50 at once, every 5 ms; a stretch of 2 ms and one of 40 alternate.
    const auto slow = [](schedule::Duration at) {
        return CommonTime::Seen{true, 1, 50 * static_cast<uint64_t>(at / 5ms), 40};
    };
    for (double enough = 100; enough < 900; enough += 100) {
        CommonTime time;
        for (schedule::Duration at = 0ms; time.done()[0].blocks < enough; at += kLook) {
            time.look(kBegin + at, {slow(at), steady(1000)(at)});
            if (at % 42ms == 0ms || at % 42ms == 2ms) time.interrupt();
        }
        CHECK(each_ms(time, 0) == Approx(10).epsilon(0.2));
    }
}

TEST_CASE("a starved kernel is counted over all the time in which the other one is at work", "[pairs]") {
    // Beside each launch of 10 ms it gets 50 blocks done in the first 2.5 ms, at 20 a ms as if it were alone,
    // and then none.
    CommonTime time;
    const auto launches = [](schedule::Duration at) {
        if (at % 11ms >= 10ms) return CommonTime::Seen{};
        return CommonTime::Seen{true, 1 + static_cast<uint64_t>(at / 11ms),
                                static_cast<uint64_t>(at % 11ms / 1us), 10};
    };
    const auto starved = [](schedule::Duration at) {
        const auto in_launch = std::min<schedule::Duration>(at % 11ms, 2500us);
        return CommonTime::Seen{
            true, 1, 50 * static_cast<uint64_t>(at / 11ms) + static_cast<uint64_t>(in_launch / 50us), 10};
    };
    look(time, 0ms, 110ms, starved, launches);
    CHECK(time.time() > 85ms);
    CHECK(each_ms(time, 0) == Approx(5).epsilon(0.1));
    CHECK(each_ms(time, 1) == Approx(1000).epsilon(0.02));
    // In two of three launches it gets nothing done at all.
    CommonTime seldom;
    const auto sometimes = [](schedule::Duration at) {
        const auto cycle = static_cast<uint64_t>(at / 33ms);
        const auto in_cycle = std::min<schedule::Duration>(at % 33ms, 10ms);
        return CommonTime::Seen{true, 1, 200 * cycle + static_cast<uint64_t>(in_cycle / 50us), 10};
    };
    look(seldom, 0ms, 330ms, sometimes, launches);
    CHECK(each_ms(seldom, 0) == Approx(20 / 3.0).epsilon(0.05));
    CHECK(each_ms(seldom, 1) == Approx(1000).epsilon(0.02));
}

TEST_CASE("what is seen is old until it changes", "[pairs]") {
    // A look every 5 us, tickets every 100.
    CommonTime time;
    const At old = [](schedule::Duration at) { return steady(1000)(at - at % 100us); };
    for (schedule::Duration at = 0ms; at < 2ms; at += 5us) time.look(kBegin + at, {old(at + 35us), old(at)});
    for (const size_t side : {0, 1}) CHECK(each_ms(time, side) == Approx(1000).epsilon(0.001));
}

TEST_CASE("another launch, or another program at work, begins a time anew", "[pairs]") {
    CommonTime time;
    look(time, 0ms, 10ms, steady(1000, 1), steady(500));
    const double before = time.done()[0].blocks;
    // Blocks are counted from 0 again; it is seen in the next look, without a gap.
    look(
        time, 10ms, 10200us, [](schedule::Duration) { return CommonTime::Seen{true, 2, 0, 10}; },
        steady(500));
    CHECK(time.done()[0].blocks == before);
    look(
        time, 10200us, 20ms,
        [](schedule::Duration at) {
            return CommonTime::Seen{true, 2, static_cast<uint64_t>((at - 10200us) / 1us), 10};
        },
        steady(500));
    CHECK(each_ms(time, 0) == Approx(1000).epsilon(0.01));
    time.interrupt();
    const auto sums = time.done();
    look(time, 20ms, 20200us, steady(1000, 3), steady(500));
    CHECK(time.done()[0].blocks == sums[0].blocks);  // not settled
    // What is seen may be older than what was.
    look(time, 21ms, 25ms, steady(1000, 3), steady(500));
    look(time, 22ms, 23ms, steady(1000, 3), steady(500));
    CHECK(time.done()[0].blocks < sums[0].blocks + 10'000);
    time.clear();
    CHECK(time.done()[0].blocks == 0);
}
