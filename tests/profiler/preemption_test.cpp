#include "profiler/models/preemption.h"

#include <catch2/catch.hpp>

namespace smt::profiler::models {

TEST_CASE("a ticket is some blocks, sixteen at most", "[preemption]") {
    CHECK(ticket_blocks(0) == 16);
    CHECK(ticket_blocks(100) == 16);
    CHECK(ticket_blocks(2'000) == 8);
    CHECK(ticket_blocks(11'000) == 1);   // one and a half would be 16.5 us, but tickets are whole
    CHECK(ticket_blocks(10'000'000) == 1);
}

TEST_CASE("where somebody may stop it a ticket is half as long, but two blocks stay two", "[preemption]") {
    CHECK(stoppable_ticket_blocks(100) == 16);
    CHECK(stoppable_ticket_blocks(1'000) == 8);
    CHECK(stoppable_ticket_blocks(2'000) == 4);
    CHECK(stoppable_ticket_blocks(7'000) == 2);
    CHECK(stoppable_ticket_blocks(10'000) == 2);
    CHECK(stoppable_ticket_blocks(11'000) == 1);
}

TEST_CASE("in a long launch that nobody may stop a ticket is twice as long", "[preemption]") {
    CHECK(long_ticket_blocks(100) == 16);
    CHECK(long_ticket_blocks(4'000) == 8);
    CHECK(long_ticket_blocks(16'400) == 2);
    CHECK(long_ticket_blocks(30'000) == 1);
}

TEST_CASE("a stop is a ticket and a notice", "[preemption]") {
    CHECK(stop_ns({605, 132, 8}) == Approx(12'000 + 638'880));
    CHECK(stop_ns({2, 132, 8}) == Approx(12'000 + 4 * 2'112));   // 3.8 blocks are rounded
    CHECK(stop_ns({1, 10, 1}) == Approx(12'000 + 16 * 10));
    CHECK(stop_ns({0, 132, 8}) == 0);
    CHECK(stop_ns({605, 0, 8}) == 0);
}

}  // namespace smt::profiler::models
