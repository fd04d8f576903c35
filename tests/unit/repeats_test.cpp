// Which lines of the log are shown.
#include "runtime/server/repeats.h"

#include <catch2/catch.hpp>
#include <string>

namespace smt::runtime::server {
namespace {

constexpr uint64_t kMoment = 1'000'000;

TEST_CASE("a line that comes again and again is shown some times, and what was left out is counted",
          "[repeats]") {
    Repeats repeats;
    uint32_t shown = 0;
    for (uint32_t i = 0; i < 1000; ++i)
        shown += repeats.shown(7, "operation " + std::to_string(i) + " failed", kMoment + i);
    CHECK(shown == Repeats::kMostOfShape);
    CHECK(repeats.shown(7, "something else", kMoment));
    CHECK(repeats.shown(8, "operation 1 failed", kMoment));  // another session's
    CHECK(repeats.over(kMoment + Repeats::kWindow / 2).empty());
    const auto left = repeats.over(kMoment + 2 * Repeats::kWindow);
    REQUIRE(left.size() == 1);
    CHECK(left[0].session == 7);
    CHECK(left[0].lines == 1000 - Repeats::kMostOfShape);
    CHECK(left[0].last == "operation 999 failed");
    CHECK(repeats.shown(7, "operation 1000 failed", kMoment + 2 * Repeats::kWindow));
}

TEST_CASE("a session that says something new each time is held to a number, the server to another",
          "[repeats]") {
    Repeats repeats;
    uint64_t shown = 0, left = 0;
    for (uint32_t i = 0; i < 5000; ++i)
        shown += repeats.shown(1, std::string(1 + i % 150, 'a' + static_cast<char>(i / 150 % 26)), kMoment);
    CHECK(shown == Repeats::kMostOfSession);
    for (const Repeats::Left& each : repeats.over(kMoment + Repeats::kWindow)) left += each.lines;
    CHECK(shown + left == 5000);
    uint64_t own = 0;
    for (uint32_t i = 0; i < 5000; ++i) own += repeats.shown(0, "refused a program: no", kMoment);
    CHECK(own == Repeats::kMostOfSession);
}

TEST_CASE("the number of kinds of lines that are told apart is bounded", "[repeats]") {
    Repeats repeats;
    uint64_t shown = 0;
    for (uint32_t i = 0; i < 100'000; ++i)
        shown += repeats.shown(i / 10, std::string(1 + i % 10, 'x'), kMoment);
    CHECK(shown == 100'000);
    CHECK(repeats.over(kMoment + Repeats::kWindow).empty());
}

}  // namespace
}  // namespace smt::runtime::server
