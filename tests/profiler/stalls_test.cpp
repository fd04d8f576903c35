#include "profiler/models/stalls.h"

#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace smt::profiler::models {
namespace {

constexpr double kEndlessMemory = 1e18;

}  // namespace

TEST_CASE("what warps do is divided by hand", "[stalls]") {
    // Eight warps, half an instruction a cycle: 16 warp-cycles for each. 3 of them ready, 9 in memory, so 4
    // for all the rest; a tenth of the instructions share 90 cycles.
    const Stalls counted{
        .warps = 8, .issue = 0.5, .not_selected = 3, .memory = 9, .memory_ratio = 0.1, .requests = 2};
    const Waits idle = waits(counted, {.latency = 600, .requests_per_cycle = kEndlessMemory});
    CHECK(idle.interval == Approx(4));
    CHECK(idle.latency == Approx(90));
    CHECK(idle.requests == 2);
    // 0.1 requests a cycle of 0.4: a quarter of what memory serves. 90 cycles are 67.5 without, less 2.5 for
    // the second request.
    CHECK(waits(counted, {.latency = 600, .requests_per_cycle = 0.4}).latency == Approx(65));
    CHECK(waits(counted, {.latency = 600, .requests_per_cycle = 0.4, .contention = 2}).latency ==
          Approx(42.5));
}

TEST_CASE("the model is told all of it", "[stalls]") {
    KernelModel kernel{.warps_per_block = 4, .memory_ratio = 0.1};
    tell({3, 70, 2, {0.5, 0, 0.25}}, kernel);
    CHECK((kernel.interval == 3 && kernel.latency == 70 && kernel.requests == 2 &&
           kernel.pipes == PipeCycles{0.5, 0, 0.25}));
    CHECK((kernel.warps_per_block == 4 && kernel.memory_ratio == 0.1));
}

TEST_CASE("nothing of nothing, and no less than a cycle", "[stalls]") {
    CHECK(waits({}, {600, 0.1}).interval == 1);
    CHECK(waits({}, {600, 0.1}).latency == 0);
    const Waits computes = waits({.warps = 8, .issue = 1, .not_selected = 7}, {600, 0.1});
    CHECK((computes.interval == 1 && computes.latency == 0));
    CHECK(waits({8, 0.5, 3, 9, 0.1, 2}, {600, 0.05}).latency == 1);  // twice what memory serves
    const Waits stores =
        waits({.warps = 8, .issue = 0.5, .memory_ratio = 0.1, .requests = 1}, {600, kEndlessMemory});
    CHECK((stores.latency == 1 && stores.requests == 1));
}

TEST_CASE("an interval is a bound on the issue rate", "[stalls]") {
    const Memory memory{.latency = 400, .requests_per_cycle = kEndlessMemory};
    CHECK(issued(memory, {.count = 2, .interval = 8})[0] == Approx(0.25));
    CHECK(issued(memory, {.count = 8, .interval = 8})[0] == Approx(1));
    CHECK(issued(memory, {.count = 12, .interval = 8})[0] == Approx(1));
    CHECK(issued(memory, {.count = 2, .warps = 2, .interval = 8})[0] == Approx(0.5));
    // One warp: 5 cycles for each instruction, 100 more for each tenth.
    CHECK(issued(memory, {.count = 1, .memory_ratio = 0.1, .interval = 5, .latency = 100})[0] ==
          Approx(1 / (5 + 0.1 * 100)));
    CHECK(issued({400, 0.1}, {.count = 1, .memory_ratio = 0.1, .latency = 100, .requests = 0})[0] ==
          Approx(1 / (1 + 0.1 * 100)));
    CHECK(issued({400, 0.1}, {.count = 1, .memory_ratio = 0.1, .latency = 100, .requests = 3})[0] ==
          Approx(1 / (1 + 0.1 * 150)));
}

TEST_CASE("two intervals share a scheduler", "[stalls]") {
    const Memory memory{.latency = 400, .requests_per_cycle = kEndlessMemory};
    const auto both = [&](int first, double d1, int second, double d2) {
        return issued(memory, {.count = first, .interval = d1}, {.count = second, .interval = d2});
    };
    // Three of ten cycles are the slow ones', the fast one has the other seven.
    const auto [fast, slow] = both(1, 1, 3, 10);
    CHECK(fast == Approx(0.7));
    CHECK(slow == Approx(0.3));
    CHECK(both(3, 10, 1, 1)[1] == Approx(0.7));
    const auto [third, quarter] = both(1, 3, 1, 4);  // room for both
    CHECK(third == Approx(1.0 / 3));
    CHECK(quarter == Approx(0.25));
    const auto [half, other] = both(6, 2, 6, 4);  // turns
    CHECK(half == Approx(0.5));
    CHECK(other == Approx(0.5));
    CHECK(both(0, 1, 2, 4)[1] == Approx(0.5));  // an absent kernel is not waited for
}

TEST_CASE("a pipe is a bound for the kernels that use it", "[stalls]") {
    const Memory memory{.latency = 400, .requests_per_cycle = kEndlessMemory};
    const Units integers{.count = 8, .interval = 4, .pipes = {2, 0}},
        floats{.count = 8, .interval = 4, .pipes = {0, 1.25}};
    CHECK(issued(memory, integers)[0] == Approx(0.5));
    CHECK(issued(memory, floats)[0] == Approx(0.8));
    // Side by side the scheduler is full: eight warps each in sixteen cycles, and neither pipe is.
    CHECK(issued(memory, integers, floats)[0] == Approx(0.5));
    CHECK(issued(memory, integers, floats)[1] == Approx(0.5));
    // Of one kind the pipe is shared: 32 cycles for sixteen.
    CHECK(issued(memory, integers, integers)[0] == Approx(0.25));
    // Warps take turns: nine in eighteen cycles. A slower one that could not keep up leaves its turns to the
    // others.
    const auto [many, one] = issued(memory, integers, {.count = 1, .interval = 10, .pipes = {2, 0}});
    CHECK(one == Approx(1.0 / 18));
    CHECK(many == Approx(8.0 / 18));
    const auto [most, least] = issued(memory, integers, {.count = 1, .interval = 40, .pipes = {2, 0}});
    CHECK(least == Approx(1.0 / 40));
    CHECK(2 * (most + least) == Approx(1));
    CHECK(waits({.warps = 8, .issue = 0.5, .busy = {0.75, 0.1}}, memory).pipes[0] == Approx(1.5));
    CHECK(waits({.warps = 8, .issue = 0.5, .busy = {0.75, 0.1}}, memory).pipes[1] == Approx(0.2));
}

// Warps with a clock of their own, cycle by cycle: an instruction is followed by another of the warp d cycles
// later at the soonest, and by `latency` more if it was an access. The scheduler takes those that are ready
// in turns.
TEST_CASE("the chain with intervals is what warps with a clock do, roughly", "[stalls]") {
    struct Case {
        int warps, interval, latency;
        double memory_ratio;
    };
    const auto [a, b] = GENERATE(std::pair{Case{8, 4, 60, 0.05}, Case{0, 1, 1, 0}},
                                 std::pair{Case{4, 6, 100, 0.1}, Case{4, 1, 50, 0.02}},
                                 std::pair{Case{6, 2, 200, 0.2}, Case{2, 10, 100, 0.0}},
                                 std::pair{Case{8, 3, 20, 0.02}, Case{8, 12, 400, 0.1}});
    struct Warp {
        const Case* kernel;
        long ready = 0;
        size_t which;
    };
    std::vector<Warp> warps;
    for (int i = 0; i < a.warps; ++i) warps.push_back({&a, 0, 0});
    for (int i = 0; i < b.warps; ++i) warps.push_back({&b, 0, 1});
    std::mt19937_64 random(7);
    std::array<double, 2> instructions{};
    constexpr long kCycles = 400'000;
    size_t turn = 0;
    for (long now = 0; now < kCycles; ++now) {
        for (size_t i = 0; i < warps.size(); ++i) {
            Warp& warp = warps[(turn + i) % warps.size()];
            if (warp.ready > now) continue;
            ++instructions[warp.which];
            const bool access = std::generate_canonical<double, 53>(random) < warp.kernel->memory_ratio;
            const double wait =
                access ? std::exponential_distribution<double>(1.0 / warp.kernel->latency)(random) : 0;
            warp.ready = now + warp.kernel->interval + std::lround(wait);
            turn = (turn + i + 1) % warps.size();
            break;
        }
    }
    const auto units = [](const Case& kernel) {
        return Units{.count = kernel.warps,
                     .memory_ratio = kernel.memory_ratio,
                     .interval = double(kernel.interval),
                     .latency = double(kernel.latency)};
    };
    const auto predicted = issued({.latency = 400, .requests_per_cycle = kEndlessMemory}, units(a), units(b));
    INFO(a.warps << " warps and " << b.warps);
    for (size_t i = 0; i < 2; ++i)
        CHECK(predicted[i] == Approx(instructions[i] / kCycles).epsilon(0.12).margin(1e-9));
}

}  // namespace smt::profiler::models
