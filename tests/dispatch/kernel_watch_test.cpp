// The watch of endless kernels, by a clock of the test's own.
#include "runtime/server/kernel_watch.h"

#include <catch2/catch.hpp>
#include <chrono>

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;
using WatchSeat = KernelWatch::Seat;

WatchSeat seat(uint64_t stream, uint64_t launch, schedule::Duration limit = 2s) {
    return {.stream = stream,
            .session = static_cast<uint32_t>(stream),
            .limit = limit,
            .running = {.launch = launch}};
}
WatchSeat counted(uint64_t stream, uint64_t launch, uint64_t tickets) {
    WatchSeat made = seat(stream, launch);
    made.running.seen = true;
    made.running.progress = tickets;
    return made;
}

struct Watched {
    KernelWatch watch;
    schedule::TimePoint now{};
    // Looks every tenth of a second.
    std::optional<KernelWatch::Overdue> after(schedule::Duration time, const std::vector<WatchSeat>& seats) {
        std::optional<KernelWatch::Overdue> found;
        for (const schedule::TimePoint end = now + time; now < end && !found; now += 100ms)
            found = watch.look(now, seats);
        return found;
    }
};

}  // namespace

TEST_CASE("kernel watch: a launch beyond its limit is found, and none below", "[kernel_watch]") {
    Watched all;
    CHECK_FALSE(all.after(2s, {seat(1, 7)}));
    const auto found = all.after(1s, {seat(1, 7)});
    REQUIRE(found);
    CHECK(found->seat.stream == 1);
    CHECK(found->lasted > 2s);
    CHECK(found->lasted <= 2200ms);
}

TEST_CASE("kernel watch: without a limit nothing is found", "[kernel_watch]") {
    Watched all;
    CHECK_FALSE(all.after(1h, {seat(1, 7, 0s)}));
    CHECK(all.watch.longest() == 0s);
    CHECK_FALSE(all.after(1s, {seat(2, 3)}));
    CHECK(all.watch.longest() >= 800ms);
    CHECK_FALSE(all.after(100ms, {}));
    CHECK(all.watch.longest() == 0s);
}

TEST_CASE("kernel watch: launches one after the other have a limit each", "[kernel_watch]") {
    Watched all;
    for (uint64_t launch = 0; launch < 20; ++launch) CHECK_FALSE(all.after(1500ms, {seat(1, launch)}));
}

TEST_CASE("kernel watch: a block that is taken is progress", "[kernel_watch]") {
    Watched all;
    for (uint64_t tickets = 1; tickets < 20; ++tickets)
        CHECK_FALSE(all.after(1500ms, {counted(1, 7, tickets)}));
    CHECK(all.after(3s, {counted(1, 7, 20)}));
}

TEST_CASE("kernel watch: time in which it does not run does not count", "[kernel_watch]") {
    Watched all;
    for (int turn = 0; turn < 10; ++turn) {
        CHECK_FALSE(all.after(1500ms, {seat(1, 7)}));
        CHECK_FALSE(all.after(1h, {}));  // held back
    }
}

TEST_CASE("kernel watch: what may wait behind another stream's launch is left alone", "[kernel_watch]") {
    Watched all;
    CHECK_FALSE(all.after(100ms, {seat(1, 7, 0s)}));
    CHECK_FALSE(all.after(1h, {seat(2, 3), seat(1, 7, 0s)}));  // the first one has no limit
    CHECK(all.after(3s, {seat(2, 3)}));
}

TEST_CASE("kernel watch: of launches that are new at one look the first one issued was first",
          "[kernel_watch]") {
    Watched all;
    WatchSeat one = seat(1, 7, 0s), two = seat(2, 3);
    one.running.issued += 2ms, two.running.issued += 1ms;
    CHECK(all.after(3s, {one, two}));  // the second one has the limit
    one.running.launch = two.running.launch = 8;
    one.running.issued -= 2ms;
    CHECK_FALSE(all.after(1h, {one, two}));
}

TEST_CASE("kernel watch: beside shorter launches of others its time goes on", "[kernel_watch]") {
    Watched all;
    CHECK_FALSE(all.after(100ms, {seat(2, 3), seat(1, 0, 0s)}));
    std::optional<KernelWatch::Overdue> found;
    for (uint64_t launch = 1; launch < 40 && !found; ++launch)
        found = all.after(100ms, {seat(2, 3), seat(1, launch, 0s)});
    REQUIRE(found);
    CHECK(found->seat.stream == 2);
}

TEST_CASE("kernel watch: a more urgent tenant's launches may have its room", "[kernel_watch]") {
    Watched all;
    CHECK_FALSE(all.after(100ms, {seat(2, 3)}));
    WatchSeat urgent = seat(1, 0, 0s);
    urgent.priority = 1;
    for (uint64_t launch = 1; launch < 100; ++launch) {
        urgent.running.launch = launch;
        CHECK_FALSE(all.after(100ms, {seat(2, 3), urgent}));
    }
}

TEST_CASE("kernel watch: one that has taken tickets has begun, whatever else runs", "[kernel_watch]") {
    Watched all;
    CHECK_FALSE(all.after(100ms, {seat(1, 7, 0s)}));
    const auto found = all.after(3s, {seat(1, 7, 0s), counted(2, 3, 1)});
    REQUIRE(found);
    CHECK(found->seat.stream == 2);
}

TEST_CASE("kernel watch: of two endless launches the first one is found, then the other", "[kernel_watch]") {
    Watched all;
    CHECK_FALSE(all.after(100ms, {seat(1, 7)}));
    auto found = all.after(1h, {seat(2, 3), seat(1, 7)});
    REQUIRE(found);
    CHECK(found->seat.stream == 1);
    CHECK_FALSE(all.after(2s, {seat(2, 3)}));
    found = all.after(1s, {seat(2, 3)});
    REQUIRE(found);
    CHECK(found->seat.stream == 2);
}

TEST_CASE("kernel watch: a pause of the process itself does not count", "[kernel_watch]") {
    Watched all;
    CHECK_FALSE(all.after(100ms, {seat(1, 7)}));
    all.now += 1h;
    CHECK_FALSE(all.after(500ms, {seat(1, 7)}));
}

}  // namespace smt::runtime::server
