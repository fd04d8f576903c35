#include "profiler/models/preemption.h"

#include <catch2/catch.hpp>

namespace smt::profiler::models {

TEST_CASE(
    "a ticket is some blocks, sixteen at most; twice as many in a long launch, half as many but two where "
    "it may be stopped",
    "[preemption]") {
    struct Row {
        uint64_t block_ns;
        uint32_t usual, in_a_long_launch, preemptible;
    };
    for (const Row& row : {Row{0, 16, 16, 16}, Row{1'000, 16, 16, 8}, Row{2'000, 8, 16, 4},
                           Row{4'000, 4, 8, 2}, Row{7'000, 2, 5, 2}, Row{10'000, 2, 3, 2},
                           Row{11'000, 1, 3, 1},  // one and a half would be 16.5 us, but tickets are whole
                           Row{16'400, 1, 2, 1}, Row{30'000, 1, 1, 1}, Row{10'000'000, 1, 1, 1}}) {
        CAPTURE(row.block_ns);
        CHECK(ticket_blocks(row.block_ns) == row.usual);
        CHECK(long_ticket_blocks(row.block_ns) == row.in_a_long_launch);
        CHECK(preemptible_ticket_blocks(row.block_ns) == row.preemptible);
    }
}

TEST_CASE("a stop is a ticket and a notice", "[preemption]") {
    CHECK(stop_ns({605, 132, 8}) == Approx(12'000 + 638'880));
    CHECK(stop_ns({2, 132, 8}) == Approx(12'000 + 4 * 2'112));  // 3.8 blocks are rounded
    CHECK(stop_ns({1, 10, 1}) == Approx(12'000 + 16 * 10));
    CHECK(stop_ns({0, 132, 8}) == 0);
    CHECK(stop_ns({605, 0, 8}) == 0);
}

}  // namespace smt::profiler::models
