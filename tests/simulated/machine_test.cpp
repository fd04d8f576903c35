// The machine with scripted blocks, and the exact cycle of everything that matters.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/simulated/script.h"

using namespace smt::tests;

namespace {

constexpr BlockNeeds kWarp{32, 32, 0, 1};
constexpr BlockNeeds kWide{1024, 32, 0, 1};  // two of these fill a multiprocessor

const Instruction kDependent{.unit = Unit::kFloat, .reads = {1}, .writes = {1}};
const Instruction kFloat{.unit = Unit::kFloat};

Cycle busy(const ScriptGrid& grid) { return grid.result.ended - grid.result.started; }

}  // namespace

TEST_CASE("one warp waits for its operands", "[machine]") {
    Machine machine({.multiprocessors = 1});
    auto grid = script("chain", 1, kWarp, repeat(10, {kDependent}));
    machine.launch(grid);
    run(machine);
    REQUIRE(grid->over);
    CHECK(grid->result.started == kLaunchLatency);
    CHECK(busy(*grid) == kBlockStart + 9 * 4 + 1);  // nine latencies, then the last one is issued
    CHECK(grid->result.instructions == 10);
    CHECK(grid->result.thread_instructions == 320);
    CHECK(machine.now() == grid->result.ended + kGridDrain);
}

TEST_CASE("independent instructions follow each other at the unit's rate", "[machine]") {
    const auto time = [](Unit unit) {
        Machine machine({.multiprocessors = 1});
        auto grid = script("rate", 1, kWarp, repeat(10, {{.unit = unit}}));
        machine.launch(grid);
        run(machine);
        return busy(*grid) - kBlockStart;
    };
    CHECK(time(Unit::kFloat) == 9 * 1 + 1);
    CHECK(time(Unit::kInteger) == 9 * 2 + 1);
    CHECK(time(Unit::kDouble) == 9 * 2 + 1);
    CHECK(time(Unit::kSpecial) == 9 * 8 + 1);
}

TEST_CASE("warps of one sub-partition share its issue slot, the oldest first", "[machine]") {
    Machine machine({.multiprocessors = 1});
    auto old = script("old", 4, kWarp, repeat(100, {kFloat}));  // one warp on each sub-partition
    auto young = script("young", 4, kWarp, repeat(100, {kFloat}));
    machine.launch(old);
    machine.launch(young);
    run(machine);
    CHECK(old->result.ended < young->result.ended);
    CHECK(busy(*old) == kBlockStart + 3 * kBlockSpacing + 99 + 1);
    CHECK(young->result.ended - old->result.started == kBlockStart + 3 * kBlockSpacing + 200);
}

TEST_CASE("eight warps hide what one must wait for", "[machine]") {
    const auto time = [](uint32_t warps) {
        Machine machine({.multiprocessors = 1});
        auto grid = script("hide", 1, {32 * warps, 32, 0, 1}, repeat(100, {kDependent}));
        machine.launch(grid);
        run(machine);
        return busy(*grid);
    };
    CHECK(time(4) == time(1));
    CHECK(time(16) <= time(1) + 4);  // four a sub-partition fill its slots
    CHECK(time(32) >= 2 * time(1) - kBlockStart - 8);
}

TEST_CASE("a short kernel waits behind a long one: first come, first served", "[machine]") {
    Machine machine({.multiprocessors = 2});
    // A block of 32 warps and 1000 instructions each keeps the four schedulers for 8000 cycles. Four blocks
    // are resident, two on each multiprocessor, and the oldest goes first: a place becomes free every 8000
    // cycles. The large kernel has blocks left until two places have; the third is the small kernel's.
    auto large = script("large", 8, kWide, repeat(1000, {kDependent}));
    auto small = script("small", 1, kWarp, repeat(10, {kDependent}));
    machine.launch(large);
    machine.launch(small);
    run(machine);
    CHECK(large->result.started == kLaunchLatency);
    CHECK(small->result.started == kLaunchLatency + kBlockStart + 3 * 8000);
    CHECK(nanoseconds_of(small->result.started) == 13272);
    CHECK(nanoseconds_of(large->result.ended) == 17314);
    // Resident at last, it still finds the large kernel's last block older in every issue slot.
    CHECK(nanoseconds_of(small->result.ended) == 17331);
}

TEST_CASE("the same short kernel alone, or with priority, does not", "[machine]") {
    Machine alone({.multiprocessors = 2});
    auto only = script("small", 1, kWarp, repeat(10, {kDependent}));
    alone.launch(only);
    run(alone);
    CHECK(nanoseconds_of(only->result.ended) == 1170);

    // Priority takes the first place that becomes free, not a resident block's.
    Machine machine({.multiprocessors = 2});
    auto large = script("large", 12, kWide, repeat(1000, {kDependent}));
    auto urgent = script("urgent", 1, kWarp, repeat(10, {kDependent}));
    auto behind = script("behind", 1, kWarp, repeat(10, {kDependent}));
    urgent->priority = -5;
    machine.launch(large);
    machine.launch(behind);
    machine.at(5000, [&] { machine.launch(urgent); });
    run(machine);
    CHECK(urgent->result.started < behind->result.started);
    CHECK(urgent->result.ended < large->result.ended);
    CHECK(urgent->result.started > large->result.started);
}

TEST_CASE("a later kernel gets what the first one leaves over", "[machine]") {
    Machine machine({.multiprocessors = 2});
    auto first = script("first", 3, kWide, repeat(1000, {kDependent}));
    auto second = script("second", 2, kWide, repeat(1000, {kDependent}));
    machine.launch(first);
    machine.launch(second);
    run(machine);
    CHECK(first->begun == std::vector<std::pair<uint32_t, uint32_t>>{{0, 0}, {1, 1}, {2, 0}});
    CHECK(second->begun.front() == std::pair<uint32_t, uint32_t>{0, 1});
    CHECK(second->result.started == first->result.started);  // one block beside it, the other later
    CHECK(second->result.ended > first->result.ended);
    CHECK(second->result.most_resident == std::vector<uint32_t>{1, 1});
}

TEST_CASE("memory is shared among the multiprocessors", "[machine]") {
    const auto time = [](uint32_t blocks, uint16_t sectors) {
        Machine machine({.multiprocessors = 4});
        const Instruction load{
            .unit = Unit::kMemory, .writes = {1}, .space = Space::kGlobal, .transactions = sectors};
        const Instruction use{.unit = Unit::kFloat, .reads = {1}};
        auto grid = script("memory", blocks, {256, 32, 0, 1}, repeat(50, {load, use}));
        machine.launch(grid);
        run(machine);
        return busy(*grid);
    };
    CHECK(time(1, 1) > 50 * kGlobalLatency);
    CHECK(time(4, 1) < time(1, 1) + 200);  // latency-bound: others do not matter
    // 32 sectors an access, 8 warps: the memory's own rate, whichever warp accesses it.
    const uint64_t sectors = 32 * 8 * 50;
    const double cycles_a_sector = 32 / (4.6e12 / 132 / 1.98e9) / 4;
    CHECK(static_cast<double>(time(32, 32)) ==
          Approx(static_cast<double>(32 * sectors) * cycles_a_sector).epsilon(0.05));
    CHECK(time(32, 32) > 3 * time(8, 32));
}

TEST_CASE("bank conflicts take the shared memory's passes", "[machine]") {
    const auto time = [](uint16_t passes) {
        Machine machine({.multiprocessors = 1});
        const Instruction load{
            .unit = Unit::kMemory, .writes = {1}, .space = Space::kShared, .transactions = passes};
        auto grid = script("shared", 1, {1024, 32, 0, 1}, repeat(50, {load}));
        machine.launch(grid);
        run(machine);
        return busy(*grid) - kBlockStart;
    };
    CHECK(time(32) > 16 * time(1));
}

TEST_CASE("a barrier lets no thread through before the last has come", "[machine]") {
    Machine machine({.multiprocessors = 1});
    std::vector<Instruction> work = repeat(10, {kDependent});
    work.push_back({.unit = Unit::kBarrier, .result = Step::Result::kBarrier});
    work.push_back(kDependent);
    auto grid = script("barrier", 1, {64, 32, 0, 1}, work);
    machine.launch(grid);
    run(machine);
    CHECK(grid->over);
    CHECK(grid->result.end == GridResult::End::kDone);
    CHECK(busy(*grid) > kBlockStart + 9 * 4 + kBarrierRelease);
}

TEST_CASE("copies overlap kernels and each other's direction", "[machine]") {
    Machine machine({.multiprocessors = 1});
    auto grid = script("kernel", 1, kWarp, repeat(30000, {kDependent}));  // about 60 us
    Cycle up = 0, second_up = 0, down = 0;
    machine.launch(grid);
    machine.copy(CopyEngine::kToDevice, 1u << 20, [&] { up = machine.now(); });
    machine.copy(CopyEngine::kToDevice, 1u << 20, [&] { second_up = machine.now(); });
    machine.copy(CopyEngine::kToHost, 1u << 20, [&] { down = machine.now(); });
    run(machine);
    CHECK(nanoseconds_of(up) == 20264);  // 1 MiB at 55 GB/s and the latency
    CHECK(up == down);
    CHECK(second_up == 2 * up);
    CHECK(second_up < grid->result.ended);
    Machine again({.multiprocessors = 1});
    auto alone = script("kernel", 1, kWarp, repeat(30000, {kDependent}));
    again.launch(alone);
    run(again);
    CHECK(alone->result.ended == grid->result.ended);
}

TEST_CASE("a fault or the step limit ends the grid and nothing else", "[machine]") {
    Machine machine({.multiprocessors = 2, .step_limit = 5000});
    auto good = script("good", 4, {256, 32, 0, 1}, repeat(100, {kDependent}));
    std::vector<Instruction> bad_work = repeat(50, {kDependent});
    bad_work.push_back({.unit = Unit::kMemory, .result = Step::Result::kFault});
    bad_work.push_back(kDependent);
    auto bad = script("bad", 4, {256, 32, 0, 1}, bad_work);
    auto endless = script("endless", 1, kWarp, repeat(6000, {kFloat}));
    std::vector<Instruction> stuck_work{{.unit = Unit::kBarrier, .result = Step::Result::kBarrier}};
    machine.launch(good);
    machine.launch(bad);
    machine.launch(endless);
    run(machine);
    CHECK(good->result.end == GridResult::End::kDone);
    CHECK(good->result.instructions == 4 * 8 * 100);
    CHECK(bad->result.end == GridResult::End::kFault);
    REQUIRE(bad->result.fault);
    CHECK(endless->result.end == GridResult::End::kStepLimit);
    CHECK(endless->result.instructions == 5000);
    // The places are free again.
    auto after = script("after", 4, kWide, {kFloat});
    machine.launch(after);
    run(machine);
    CHECK(after->result.most_resident == std::vector<uint32_t>{2, 2});
}

TEST_CASE("the same work takes the same time to the cycle", "[machine]") {
    const auto times = [] {
        Machine machine({.multiprocessors = 3});
        std::vector<std::shared_ptr<ScriptGrid>> grids;
        const Instruction load{
            .unit = Unit::kMemory, .writes = {2}, .space = Space::kGlobal, .transactions = 4};
        for (uint32_t i = 0; i < 6; ++i) {
            grids.push_back(
                script("g", 3 + 5 * i, {64 + 96 * i, 32 + 16 * i, 0, 1}, repeat(40, {load, kDependent})));
            machine.launch(grids.back());
        }
        run(machine);
        std::vector<Cycle> all;
        for (const auto& grid : grids) all.insert(all.end(), {grid->result.started, grid->result.ended});
        return all;
    };
    CHECK(times() == times());
}

TEST_CASE("a grid that is cancelled ends, resident or on its way", "[machine]") {
    Machine machine({.multiprocessors = 1});
    auto resident = script("resident", 4, kWide, repeat(100000, {kDependent}));
    auto waiting = script("waiting", 1, kWide, {kDependent});
    auto late = script("late", 1, kWide, {kDependent});
    auto other = script("other", 1, kWarp, repeat(10, {kDependent}));
    machine.launch(resident);
    machine.launch(other);
    machine.at(10000, [&] {
        machine.launch(late);
        machine.cancel(*late);
        machine.cancel(*resident);
    });
    run(machine);
    CHECK(resident->result.end == GridResult::End::kCancelled);
    CHECK(resident->result.ended == 10001);
    CHECK(late->result.end == GridResult::End::kCancelled);
    CHECK(late->begun.empty());
    CHECK(other->result.end == GridResult::End::kDone);
    CHECK(other->result.started == 10001);
    machine.cancel(*waiting);  // was never launched
}

TEST_CASE("a confined grid keeps to its multiprocessors, and holds up no grid behind it", "[machine]") {
    Machine machine({.multiprocessors = 4});
    auto confined = script("confined", 40, kWide, repeat(1000, {kDependent}));
    auto other = script("other", 4, kWide, repeat(10, {kDependent}));
    confined->places = std::make_shared<const std::vector<bool>>(std::vector<bool>{false, true, true, false});
    machine.launch(confined);
    machine.at(10000, [&] { machine.launch(other); });
    run(machine);
    CHECK(confined->result.blocks == std::vector<uint32_t>{0, 20, 20, 0});
    CHECK(confined->result.most_resident == std::vector<uint32_t>{0, 2, 2, 0});
    CHECK(other->result.started == 10000 + kLaunchLatency);
    CHECK(other->result.blocks == std::vector<uint32_t>{2, 0, 0, 2});
    CHECK(other->result.ended < confined->result.ended);
}
