// When a server that stands still in the driver is ended (runtime/server/standstill_rule.h).
#include <catch2/catch.hpp>
#include <chrono>
#include <vector>

#include "runtime/server/standstill_rule.h"

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;
using Launches = std::vector<device::WatchedLaunch>;

const std::chrono::steady_clock::time_point kBegin{};

device::WatchedLaunch launch_of(uint32_t session, std::chrono::nanoseconds limit,
                                std::chrono::seconds since) {
    return {{.session = session, .limit = limit}, kBegin + since};
}

// A look each second until there is a verdict, or for two minutes.
std::optional<StandstillRule::Verdict> stand(StandstillRule& rule, const Launches& launches,
                                             bool slow = false) {
    const auto place = StandstillRule::place(7, slow);
    for (int i = 0; i < 120; ++i)
        if (const auto verdict = rule.look(place, 1s, [&] { return launches; })) return verdict;
    return {};
}

}  // namespace

TEST_CASE("standstill: a program that alone has launches is at fault, when the first is over its limit") {
    StandstillRule rule;
    const auto verdict = stand(rule, {launch_of(1, 5s, 8s), launch_of(1, 5s, 7s)});
    REQUIRE(verdict);
    CHECK(verdict->launch.since == kBegin + 7s);
    CHECK(verdict->sure);
    CHECK(verdict->stood > 5s + StandstillRule::kPatience);
    CHECK(verdict->stood <= 6s + StandstillRule::kPatience);
}

TEST_CASE("standstill: beside launches of other programs it lasts longer, and no tenant is to blame") {
    // A program that always has a launch under way has had one for longest, however soon each is over.
    const auto other = GENERATE(launch_of(1, 0s, 7s), launch_of(1, 0s, 9s), launch_of(1, 5s, 9s));
    StandstillRule rule;
    const auto verdict = stand(rule, {other, launch_of(2, 5s, 8s)});
    REQUIRE(verdict);
    CHECK(verdict->launch.launch.session == 2);
    CHECK_FALSE(verdict->sure);
    CHECK(verdict->stood > 5s + StandstillRule::kBehindOthers);
}

TEST_CASE("standstill: what may take seconds lasts longer, too") {
    StandstillRule rule;
    const auto verdict = stand(rule, {launch_of(2, 5s, 8s)}, true);
    REQUIRE(verdict);
    CHECK(verdict->sure);
    CHECK(verdict->stood > 5s + StandstillRule::kBehindOthers);
}

TEST_CASE("standstill: without a launch with a limit nothing is ended") {
    StandstillRule rule;
    CHECK_FALSE(stand(rule, {launch_of(1, 0s, 7s)}));
    CHECK_FALSE(stand(rule, {}));
}

TEST_CASE("standstill: a main thread that comes further, or is elsewhere, does not stand") {
    StandstillRule rule;
    const Launches launches{launch_of(1, 1s, 0s)};
    for (uint64_t place = 1; place < 100; ++place) {
        CHECK_FALSE(rule.look(place, 1s, [&] { return launches; }));
        CHECK_FALSE(rule.look(0, 1s, [&] { return launches; }));
    }
    // nor does one whose process was stopped
    CHECK_FALSE(rule.look(1000, 1h, [&] { return launches; }));
    CHECK_FALSE(rule.look(1000, 1h, [&] { return launches; }));
}

}  // namespace smt::runtime::server
