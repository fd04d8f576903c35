#include "runtime/dispatch/launch_ahead.h"

#include <catch2/catch.hpp>

using namespace smt::runtime;
using namespace std::chrono_literals;
using dispatch::LaunchAhead;
using dispatch::ManagedFunction;
using dispatch::Work;

namespace {

constexpr schedule::Duration kTime = 10ms;
constexpr schedule::Duration kLook = 500us;  // between looks
const schedule::TimePoint kBegin = schedule::TimePoint{} + 1h;

// A stream with more to do than it may be ahead, on a GPU that does one launch after the other.
struct Stream {
    ManagedFunction function;
    LaunchAhead ahead{kTime};
    LaunchAhead::Works in_flight;
    uint64_t blocks = 1000;  // of a launch
    bool stops = false;
    bool more = true;  // than is in flight
    bool endures = false;
    schedule::Duration rest = kLook;
    schedule::TimePoint now = kBegin;
    schedule::TimePoint front_ends = kBegin;
    schedule::Duration idle{};  // that the GPU was, with more to do

    dispatch::LaunchTime& cost() { return function.queued.of(blocks, 1); }
    void issue() {
        Work work;
        work.function = &function;
        work.total = blocks;
        work.endures = endures;
        if (in_flight.empty()) ahead.begin(now);
        ahead.issued(work);
        in_flight.push_back(std::move(work));
    }
    void top_up() {
        while (!ahead.full(in_flight, stops, [this] { return now; }) || ahead.lets_go(in_flight, now))
            issue();
    }
    // The next look, while a launch takes `each`.
    void look(schedule::Duration each) {
        now += rest;
        auto last = in_flight.begin();
        for (; last != in_flight.end() && front_ends + each <= now; ++last) front_ends += each;
        if (last == in_flight.end()) idle += now - front_ends, front_ends = now;
        ahead.ended(in_flight.begin(), last, now, more);
        in_flight.erase(in_flight.begin(), last);
    }
};

}  // namespace

TEST_CASE("of a kernel of which nothing is known, so many launches go ahead", "[dispatch]") {
    Stream stream;
    stream.top_up();
    CHECK(stream.in_flight.size() == LaunchAhead::kUnknown);
}

TEST_CASE("the driver has about as much as the GPU does in the time, and the GPU never waits for it",
          "[dispatch]") {
    for (const schedule::Duration each :
         std::initializer_list<schedule::Duration>{20us, 200us, 3ms, 20ms, 1s}) {
        Stream stream;
        size_t most = 0, least = ~size_t{0};
        stream.top_up();
        for (int i = 0; i < 20'000; ++i) {
            stream.look(each);
            if (i == 2'000) stream.idle = {};  // what things cost is known by now
            if (i > 2'000 && stream.now > kBegin + 20 * each) {
                least = std::min(least, stream.in_flight.size());
                most = std::max(most, (stream.top_up(), stream.in_flight.size()));
            }
            stream.top_up();
        }
        INFO(each.count() << " ns each, " << least << " to " << most);
        CHECK(stream.idle == 0ns);
        CHECK(most * each <= 2 * kTime + LaunchAhead::kAtLeast * each);
        CHECK(least >= 1);
    }
}

TEST_CASE("where a stop should be short, no more is ahead than it takes to feed the GPU", "[dispatch]") {
    using Times = std::initializer_list<schedule::Duration>;
    // Many CTAs that leave at the door, and launches that run to their end.
    const auto [ctas, endures] = GENERATE(std::pair{100'000, false}, std::pair{100, true});
    for (const schedule::Duration each : Times{5us, 20us, 200us, 3ms}) {
        Stream stream;
        stream.stops = true;
        stream.blocks = static_cast<uint64_t>(ctas);
        stream.endures = endures;
        stream.function.function = reinterpret_cast<CUfunction>(1);
        stream.function.form = dispatch::Form::kDoor;
        size_t most = 0;
        stream.top_up();
        for (int i = 0; i < 20'000; ++i) {
            // As the dispatcher rests, and 60 us more until the thread runs again.
            stream.rest = std::clamp<schedule::Duration>(std::chrono::abs(stream.ahead.left(stream.now)) / 4,
                                                         25us, kLook) +
                          60us;
            stream.look(each);
            if (i == 2'000) stream.idle = {};  // what things cost is known by now
            stream.top_up();
            if (i > 2'000) most = std::max(most, stream.in_flight.size());
        }
        INFO(ctas << " CTAs, " << each.count() << " ns each, " << most);
        CHECK(stream.idle == 0ns);
        CHECK(most * each <= LaunchAhead::kFed * 3 / 2 + LaunchAhead::kAtLeast * each);
    }
}

TEST_CASE("short launches of few CTAs, of which a stop is soon rid, go ahead as far as they take",
          "[dispatch]") {
    Stream stream;
    stream.stops = true;
    stream.blocks = 100;
    stream.function.function = reinterpret_cast<CUfunction>(1);
    stream.function.form = dispatch::Form::kDoor;
    stream.cost().set_block_ps(1'000'000);  // 100 us
    stream.top_up();
    // Each costs a stop 3 us, but for the one that runs.
    CHECK(stream.in_flight.size() == 1 + 7);
}

TEST_CASE("a policy's limit is below the server's, and ends", "[dispatch]") {
    Stream stream;
    const auto settle = [&](schedule::Duration each) {
        for (int i = 0; i < 400; ++i) stream.look(each), stream.top_up();
        return stream.in_flight.size() * each;
    };
    CHECK(settle(100us) >= 9ms);
    CHECK_FALSE(stream.ahead.limited());
    stream.ahead.limit(1ms);
    CHECK(stream.ahead.limited());
    CHECK(settle(100us) <= 1100us);
    CHECK(settle(100us) >= 900us);
    stream.ahead.limit(1s);  // above the server's
    CHECK_FALSE(stream.ahead.limited());
    stream.ahead.limit(1ms);
    stream.ahead.limit({});
    CHECK(settle(100us) >= 9ms);
    LaunchAhead none{{}};
    none.limit(1ms);
    CHECK_FALSE(none.limited());  // nothing is known of costs there
}

TEST_CASE("what launches cost is learnt by shape, and goes with the blocks that are left", "[dispatch]") {
    Stream stream;
    for (int i = 0; i < 1000; ++i) stream.top_up(), stream.look(1ms);
    const auto cost = [&](uint64_t blocks, uint64_t done) {
        Work work;
        work.function = &stream.function;
        work.total = blocks;
        work.done = done;
        LaunchAhead(kTime).issued(work);
        return std::chrono::duration<double, std::milli>(work.cost).count();
    };
    CHECK(cost(1'000, 0) == Approx(1).epsilon(0.3));
    CHECK(cost(1'000, 900) == Approx(cost(1'000, 0) / 10).epsilon(0.01));
    // 1,000 blocks may all run at once: a larger grid need not take longer, nor a smaller one less.
    CHECK(cost(10'000, 0) == Approx(10.0 / LaunchAhead::kUnknown));
}

TEST_CASE("what a program that waits for each launch costs is learnt as it is, also if it becomes longer",
          "[dispatch]") {
    Stream stream;
    stream.more = false;
    for (const schedule::Duration each : {20ms, 40ms}) {
        stream.rest = each;
        for (int i = 0; i < 20; ++i) stream.issue(), stream.look(each);
        CHECK(stream.cost().of(1000) == Approx(static_cast<double>(each.count())).epsilon(0.2));
    }
}

TEST_CASE("two launches go ahead, however long they take", "[dispatch]") {
    Stream stream;
    stream.cost().set_block_ps(1'000'000'000'000);
    stream.top_up();
    CHECK(stream.in_flight.size() == LaunchAhead::kAtLeast);
}

TEST_CASE("what was seen late once is soon thought to be cheap again", "[dispatch]") {
    Stream stream;
    for (int i = 0; i < 1000; ++i) stream.top_up(), stream.look(100us);
    const uint64_t before = stream.cost().block_ps();
    stream.now += 90ms;  // something else had to be waited for
    stream.front_ends += 90ms;
    for (int i = 0; i < 100; ++i) stream.look(100us), stream.top_up();
    CHECK(stream.cost().block_ps() < 2 * before);
}

TEST_CASE("behind a launch that waits for something one after the other is let go", "[dispatch]") {
    Stream stream;
    stream.top_up();
    stream.now += LaunchAhead::kStall / 2;
    CHECK_FALSE(stream.ahead.lets_go(stream.in_flight, stream.now));
    for (size_t more = 1; more < 100; ++more) {
        stream.now += 2 * LaunchAhead::kStall;
        stream.top_up();
        CHECK(stream.in_flight.size() == LaunchAhead::kUnknown + more);
    }
}

TEST_CASE("without a time nothing is kept back, and nothing learnt", "[dispatch]") {
    Stream stream;
    LaunchAhead ahead{0ms};
    LaunchAhead::Works works(1);
    works.front().function = &stream.function;
    works.front().total = 5;
    ahead.issued(works.front());
    ahead.ended(works.begin(), works.end(), kBegin, false);
    CHECK_FALSE(ahead.wants_marker(true));
    CHECK_FALSE(ahead.full(works, true, [] { return kBegin; }));
    CHECK(stream.cost().block_ps() == 0);
}

TEST_CASE("the end of what is in flight is expected from launches of known cost only", "[dispatch]") {
    Stream unknown, known;
    unknown.issue();
    CHECK_FALSE(unknown.ahead.end(unknown.in_flight));
    known.cost().set_block_ps(1'000'000);  // a launch takes 1 ms
    for (int i = 0; i < 3; ++i) known.issue();
    CHECK(known.ahead.end(known.in_flight) == known.now + 3ms);
    CHECK_FALSE(LaunchAhead(0ms).end(known.in_flight));
}
