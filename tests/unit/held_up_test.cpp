// Waits for other sessions: those that last, and those that are over.
#include "runtime/device/held_up.h"

#include <catch2/catch.hpp>
#include <numeric>

namespace smt::runtime::device {
namespace {

uint64_t count(const protocol::WaitFigures& figures) {
    return std::accumulate(std::begin(figures.counts), std::end(figures.counts), uint64_t{0});
}

TEST_CASE("a wait counts when it is over, for its session", "[held_up]") {
    constexpr uint32_t kWaits = 1001, kOther = 1002;
    {
        const HeldUp first(kWaits, "its turn"), within(kWaits, "memory"), hidden(0, "of no session");
        REQUIRE(longest_wait(kWaits));
        CHECK(longest_wait(kWaits)->by == "its turn");
        CHECK(count(waits_of(kWaits)) == 0);
    }
    CHECK_FALSE(longest_wait(kWaits));
    const protocol::WaitFigures over = waits_of(kWaits);
    CHECK(count(over) == 1);  // of waits within one another the outermost
    {
        const HeldUp second(kWaits, "its turn");
    }
    CHECK(count(waits_of(kWaits)) == 2);
    CHECK(over.ns > 0);
    CHECK(count(waits_of(kOther)) == 0);
    forget_waits(kWaits);
    CHECK(count(waits_of(kWaits)) == 0);
    CHECK(count(waits_of(0)) == 0);
}

}  // namespace
}  // namespace smt::runtime::device
