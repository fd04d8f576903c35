#include "profiler/models/markov.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <random>
#include <vector>

#include "tests/profiler/cost.h"

namespace smt::profiler::models {
namespace {

constexpr double kEndless = 1e18;  // a memory that no warp has to wait for

// The same process unit by unit: no states, no matrix. Instructions a cycle of each kernel.
std::array<double, 2> simulate(const Memory& memory, const std::array<Units, 2>& kernels, int rounds) {
    enum class State { kReady, kCoalesced, kUncoalesced };
    struct Unit {
        int kernel;
        State state = State::kReady;
    };
    std::vector<Unit> units;
    for (int kernel = 0; kernel < 2; ++kernel) units.insert(units.end(), kernels[kernel].count, Unit{kernel});
    std::mt19937_64 random(20130325);
    const auto happens = [&](double probability) {
        return std::generate_canonical<double, 53>(random) < probability;
    };
    const auto requests = [&](State state) {
        if (state == State::kReady) return 0.0;
        return state == State::kCoalesced ? memory.coalesced_requests : memory.uncoalesced_requests;
    };
    double cycles = 0;
    std::array<double, 2> instructions{};
    for (int round = 0; round < rounds; ++round) {
        double ready = 0, waiting = 0;
        for (const Unit& unit : units) {
            const double warps = kernels[unit.kernel].warps;
            if (unit.state == State::kReady) ready += warps, instructions[unit.kernel] += warps;
            waiting += warps * requests(unit.state);
        }
        const double duration = ready > 0 ? ready : 1;
        cycles += duration;
        for (Unit& unit : units) {
            const Units& kernel = kernels[unit.kernel];
            if (unit.state != State::kReady) {
                const double own = requests(unit.state);
                const double latency =
                    memory.latency + (memory.contention * waiting + own - 1) / memory.requests_per_cycle;
                if (happens(duration / latency)) unit.state = State::kReady;
            } else if (happens(kernel.memory_ratio)) {
                unit.state = happens(kernel.uncoalesced_ratio) ? State::kUncoalesced : State::kCoalesced;
            }
        }
    }
    return {instructions[0] / cycles, instructions[1] / cycles};
}

TEST_CASE("one warp: an instruction a cycle, and a latency for each access", "[markov]") {
    const Memory memory{.latency = 400, .requests_per_cycle = kEndless};
    CHECK(issued(memory, {.count = 1, .memory_ratio = 0.05})[0] == Approx(1 / (1 + 0.05 * 400)));
    // Its own request is one under way: L = L_0 + 1 / B.
    CHECK(issued({400, 0.1}, {.count = 1, .memory_ratio = 0.05})[0] == Approx(1 / (1 + 0.05 * 410)));
    CHECK(issued({400, 0.1, 3}, {.count = 1, .memory_ratio = 0.05})[0] == Approx(1 / (1 + 0.05 * 430)));
}

TEST_CASE("two warps by hand (equations 2 to 4)", "[markov]") {
    // R_m = 1/2, L = 4. With i idle, the probabilities of 0, 1, 2 idle in the next round are
    //     i = 0: 1/4 1/2 1/4      i = 1: 1/8 1/2 3/8      i = 2: 1/16 6/16 9/16
    // and the steady state is (1, 4, 4) / 9. Rounds take 2, 1, 1 cycles: 6 instructions in 10 cycles.
    const Memory memory{.latency = 4, .requests_per_cycle = kEndless};
    CHECK(issued(memory, {.count = 2, .memory_ratio = 0.5})[0] == Approx(0.6));
    CHECK(issued(memory, {.count = 2, .memory_ratio = 0.5})[1] == 0);
}

TEST_CASE("a block of two warps by hand", "[markov]") {
    // Ready for a round of 2 cycles, then idle with 1/2; idle for a round of 1, then ready with 1/4. The
    // steady state is (1, 2) / 3: 2 instructions in 2 + 2 cycles.
    const Memory memory{.latency = 4, .requests_per_cycle = kEndless};
    CHECK(issued(memory, {.count = 1, .warps = 2, .memory_ratio = 0.5})[0] == Approx(0.5));
}

TEST_CASE("two kernels of a warp each by hand (equations 5 and 6)", "[markov]") {
    // Rounds with an idle warp take 1 cycle, so an access ends with 1/4, whatever the other kernel does: the
    // first is idle in 2/3 of the rounds, the second in 1/2. Both are ready in 1/6: 7/6 cycles a round.
    const Memory memory{.latency = 4, .requests_per_cycle = kEndless};
    const auto [first, second] =
        issued(memory, {.count = 1, .memory_ratio = 0.5}, {.count = 1, .memory_ratio = 0.25});
    CHECK(first == Approx(2.0 / 7));
    CHECK(second == Approx(3.0 / 7));
}

TEST_CASE("coalesced and uncoalesced accesses of one warp by hand", "[markov]") {
    // L is 2 + 1 / 0.5 = 4 for the one request of a coalesced access, and 2 + (4 + 3) / 0.5 = 16 for the four
    // of the other. Of ten instructions 3 wait for the one and 2 for the other: 10 / (10 + 12 + 32).
    const Memory memory{.latency = 2, .requests_per_cycle = 0.5, .uncoalesced_requests = 4};
    CHECK(issued(memory, {1, 1, 0.5, 0.4})[0] == Approx(10.0 / 54));
    CHECK(issued(memory, {1, 1, 0.5, 1})[0] == Approx(1 / (1 + 0.5 * 16)));
    CHECK(issued(memory, {1, 1, 0.5, 0})[0] == Approx(1 / (1 + 0.5 * 4)));
}

TEST_CASE("the chain is what a simulation of its units does", "[markov]") {
    struct Case {
        Memory memory;
        Units first, second;
    };
    const auto [memory, first, second] =
        GENERATE(Case{{30, 0.5}, {6, 1, 0.1, 0}, {}},                           // one kernel, warps
                 Case{{30, 0.1}, {4, 4, 0.2, 0}, {}},                           // blocks; memory is the limit
                 Case{{30, 0.5, 1, 1, 8}, {4, 2, 0.1, 0.3}, {}},                // both kinds of accesses
                 Case{{30, 0.5, 1, 1, 8}, {3, 1, 0.1, 1}, {}},                  // uncoalesced ones only
                 Case{{30, 0.5}, {4, 1, 0.3, 0}, {4, 1, 0.05, 0}},              // two kernels
                 Case{{30, 0.3, 2}, {3, 4, 0.1, 0}, {5, 2, 0.4, 0}},            // of unlike blocks
                 Case{{30, 0.5, 1, 2, 8}, {2, 2, 0.1, 0.5}, {3, 1, 0.2, 0}},    // one of them with both kinds
                 Case{{30, 0.5, 1, 1, 4}, {2, 2, 0.1, 0.5}, {2, 3, 0.1, 0.2}},  // and both
                 Case{{4, 1}, {5, 1, 1, 0}, {}},                                // accesses and nothing else
                 Case{{30, 0.5}, {2, 1, 0, 0}, {2, 1, 0.2, 0}});                // one without any
    const auto exact = issued(memory, first, second);
    const auto simulated = simulate(memory, {first, second}, 2'000'000);
    INFO(first.count << " units of " << first.warps << " warps, and " << second.count);
    CHECK(exact[0] == Approx(simulated[0]).epsilon(0.02));
    CHECK(exact[1] == Approx(simulated[1]).epsilon(0.02));
}

TEST_CASE("two kernels that are alike do together what one of both does", "[markov]") {
    const Memory memory{300, 0.3, 1, 1, 8};
    for (double uncoalesced : {0.0, 0.25, 1.0}) {
        const auto [first, second] = issued(memory, {2, 2, 0.1, uncoalesced}, {3, 2, 0.1, uncoalesced});
        CHECK(first + second == Approx(issued(memory, {5, 2, 0.1, uncoalesced})[0]));
        CHECK(first / 2 == Approx(second / 3));
    }
}

TEST_CASE("what memory serves is never more than its bandwidth", "[markov]") {
    for (double ratio : {0.01, 0.1, 0.5, 0.99}) {
        const Memory memory{50, 0.05};
        const auto [first, second] = issued(memory, {8, 1, ratio}, {8, 1, 0.2});
        CHECK(first * ratio + second * 0.2 < 0.05);
        CHECK(first + second <= 1);
    }
}

TEST_CASE("ends of the ranges", "[markov]") {
    const Memory memory{400, 0.2};
    CHECK(issued(memory, {.count = 4, .memory_ratio = 0})[0] == Approx(1));
    CHECK(issued(memory, {})[0] == 0);
    CHECK(issued(memory, {.count = 0, .memory_ratio = 0.1}, {.count = 1, .memory_ratio = 0})[1] == Approx(1));
    CHECK(issued(memory, {.count = 1, .memory_ratio = 1e-12})[0] == Approx(1));
    CHECK(issued(memory, {.count = 16, .memory_ratio = 1e-9})[0] == Approx(1));
    // All accesses, and a latency shorter than a round: apart from the bound on R_m this would be several
    // chains.
    const double busy = issued({2, kEndless}, {.count = 8, .memory_ratio = 1})[0];
    CHECK(busy > 0.8);
    CHECK(busy <= 1);
}

TEST_CASE("states are counted", "[markov]") {
    CHECK(states_of({4, 2, 0.1, 0}) == 5);
    CHECK(states_of({4, 2, 0.1, 1}) == 5);
    CHECK(states_of({4, 2, 0.1, 0.5}) == 15);
    CHECK(states_of({4, 2, 0, 0.5}) == 15 - 14);
    CHECK(states_of({}) == 1);
}

// Left out unless asked for: model_tests '[cost]'
TEST_CASE("what a query costs", "[.][cost]") {
    const Memory memory{600, 0.14};
    for (const auto& [first, second] : {std::array<Units, 2>{Units{8, 2, 0.1, 0}, Units{}},
                                        {Units{2, 2, 0.1, 0}, Units{2, 2, 0.02, 0}},
                                        {Units{4, 2, 0.1, 0}, Units{4, 2, 0.02, 0}},
                                        {Units{2, 2, 0.1, 0.3}, Units{3, 2, 0.02, 0}},
                                        {Units{8, 2, 0.1, 0}, Units{8, 2, 0.02, 0}}}) {
        double sum = 0;
        const double cost = tests::cost_us([&] { sum += issued(memory, first, second)[0]; });
        CHECK(sum > 0);
        std::printf("%d + %d units, %d states: %.2f us\n", first.count, second.count,
                    states_of(first) * states_of(second), cost);
    }
}

}  // namespace
}  // namespace smt::profiler::models
