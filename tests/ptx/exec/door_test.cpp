// The door's prologue, executed: which CTAs it admits, and what becomes of the frontier.
#include "rewriter/device/door.h"

#include <catch2/catch.hpp>

#include "rewriter/ptx/door.h"
#include "tests/ptx/exec/bench_device.h"

using namespace smt::test;

namespace {

constexpr uint32_t kUnits = 64;
constexpr smt::DoorStep kStep{3, 0, 1};

// Each thread counts itself for its CTA. Labels and registers have names that the prologue has, too.
const char* kCount = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry count(.param .u64 counts)
{
    .reg .b32 x, n;
    .reg .b64 stop, at;
    ld.param.u64 stop, [counts];
    mov.u32 x, %ctaid.y;
    mov.u32 n, %nctaid.x;
    mad.lo.u32 n, x, n, 0;
    mov.u32 x, %ctaid.x;
    add.u32 x, x, n;
    mul.wide.u32 at, x, 4;
    add.u64 stop, stop, at;
    bra KERNEL;
KERNEL:
    red.global.add.u32 [stop], 1;
    ret;
}
)";

class DoorDevice : public BenchDevice {
public:
    DoorDevice() {
        auto made = smt::ptx::put_doors(kCount);
        const bool loaded = load(std::get<smt::ptx::WithDoors>(made).text);
        INFO(error);
        REQUIRE(loaded);
        counts_ = copy_in(std::vector<uint32_t>(kUnits, 0));
    }
    // Of 8 x 8 CTAs in order, one after the other: which ran.
    std::vector<uint32_t> run(const smt::DoorLaunch& door, uint32_t threads = 48) {
        std::memset(reinterpret_cast<void*>(counts_), 0, kUnits * sizeof(uint32_t));
        const bool ran = launch("count", {8, 8}, {threads / 2, 2}, 0, counts_, door);
        INFO(error);
        REQUIRE(ran);
        std::vector<uint32_t> units;
        const auto counts = copy_out<uint32_t>(counts_, kUnits);
        for (uint32_t i = 0; i < kUnits; ++i) {
            CHECK((counts[i] == 0 || counts[i] == threads));
            if (counts[i]) units.push_back(i);
        }
        return units;
    }
    uint64_t word(uint32_t value) { return words({value}); }
    uint64_t words(const std::vector<uint32_t>& values) { return copy_in(values); }
    uint32_t at(uint64_t word) { return copy_out<uint32_t>(word, 1)[0]; }

private:
    uint64_t counts_ = 0;
};

std::vector<uint32_t> units(uint32_t from, uint32_t to) {
    std::vector<uint32_t> all;
    for (uint32_t i = from; i < to; ++i) all.push_back(i);
    return all;
}

}  // namespace

TEST_CASE("without orders the door admits all") {
    DoorDevice device;
    CHECK(device.run({}) == units(0, kUnits));
}

TEST_CASE("a run that is not stopped admits all of its units, and moves the frontier by steps") {
    DoorDevice device;
    for (const uint16_t early : {0, 1, 9, 64}) {
        const smt::DoorStep step{kStep.shift, 0, early};
        const uint64_t stopped = device.word(6), frontier = device.word(0);
        CHECK(device.run({stopped, frontier, 7, 0, kUnits, step}) == units(0, kUnits));
        CHECK(device.at(frontier) == kUnits + 8);  // the last step's first unit: two steps on
        const uint64_t other = device.word(0);
        CHECK(device.run({stopped, other, 7, 10, 30, step}) == units(10, 30));
        CHECK(device.at(other) == 24 + 16);
        CHECK(device.at(stopped) == 6);
    }
}

TEST_CASE("a run that is stopped admits the units below its frontier, which is final then") {
    DoorDevice device;
    for (const uint16_t early : {0, 1, 9, 64}) {
        const smt::DoorStep step{kStep.shift, 0, early};
        const uint64_t stopped = device.word(7);
        const uint64_t fresh = device.word(0), moved = device.word(24);
        CHECK(device.run({stopped, fresh, 7, 0, kUnits, step}).empty());
        CHECK(device.at(fresh) == smt::kFinalFrontier);
        CHECK(device.run({stopped, moved, 7, 0, kUnits, step}) == units(0, 24));
        CHECK(device.at(moved) == (smt::kFinalFrontier | 24));
        // Once more: final.
        CHECK(device.run({device.word(0), moved, 7, 0, kUnits, step}) == units(0, 24));
        CHECK(device.at(moved) == (smt::kFinalFrontier | 24));
        // The rest, as a run with a later number.
        const uint64_t rest = device.word(0);
        CHECK(device.run({stopped, rest, 8, 24, kUnits, step}) == units(24, kUnits));
    }
}

TEST_CASE("an exact run admits all that asks before a stop, and none behind that") {
    DoorDevice device;
    for (const uint16_t early : {0, 1, 9, 64}) {
        const smt::DoorStep step{kStep.shift, smt::kDoorExact, early};
        // As far as early units of steps go.
        const uint32_t by_steps = early == 0 ? 0 : (early - 1) / 8 * 8 + 16;
        const uint64_t frontier = device.word(0), other = device.word(0);
        CHECK(device.run({device.word(6), frontier, 7, 0, kUnits, step}) == units(0, kUnits));
        CHECK(device.at(frontier) == std::max(by_steps, kUnits));
        CHECK(device.run({device.word(6), other, 7, 10, 30, step}) == units(10, 30));
        if (early == 0) CHECK(device.at(other) == 30);
        const uint64_t fresh = device.word(0), moved = device.word(21);
        CHECK(device.run({device.word(7), fresh, 7, 0, kUnits, step}).empty());
        CHECK(device.at(fresh) == smt::kFinalFrontier);
        CHECK(device.run({device.word(7), moved, 7, 0, kUnits, step}) == units(0, 21));
        CHECK(device.at(moved) == (smt::kFinalFrontier | 21));
        CHECK(device.run({device.word(0), moved, 7, 0, kUnits, step}) == units(0, 21));
    }
}

TEST_CASE("an exact run of groups admits the rest of a group that has begun") {
    DoorDevice device;
    constexpr uint8_t kGroupsOfFour = smt::kDoorExact | 3 << smt::kDoorGroupAt;
    const smt::DoorStep step{kStep.shift, kGroupsOfFour, 1};
    const auto run = [&](uint32_t stop, uint64_t frontier, uint32_t from, uint32_t to) {
        return device.run({device.word(stop), frontier, 7, from, to, step});
    };
    const uint64_t frontier = device.word(0), other = device.word(0);
    CHECK(run(6, frontier, 0, kUnits) == units(0, kUnits));
    CHECK(device.at(frontier) == kUnits);
    CHECK(run(6, other, 10, 30) == units(10, 30));
    CHECK(device.at(other) == 32);
    for (const uint32_t begun : {0u, 24u, 45u}) {
        const uint64_t word = device.word(begun);
        CHECK(run(7, word, 0, kUnits) == units(0, begun));
        CHECK(device.at(word) == (smt::kFinalFrontier | begun));
    }
    // The stop comes when unit 16 has begun: 16 to 19 are a group.
    const uint64_t stopped = device.word(16);
    CHECK(run(6, stopped, 0, 17) == units(0, 17));
    CHECK(run(7, stopped, 17, kUnits) == units(17, 20));
    CHECK(device.at(stopped) == (smt::kFinalFrontier | 20));
}

TEST_CASE("the last unit of a run decides on the next one, of which early units run then") {
    DoorDevice device;
    const auto how = GENERATE(as<uint8_t>(), smt::kDoorDecides, smt::kDoorDecides | smt::kDoorExact);
    const smt::DoorStep early{3, how, 20};
    const uint64_t frontiers = device.words({0, 0, 5, 0}), next = frontiers + 4;
    CHECK(device.run({device.word(6), frontiers, 7, 0, kUnits, early}) == units(0, kUnits));
    CHECK(device.at(next) == smt::kBegunFrontier);
    // It was decided on before the stop.
    CHECK(device.run({device.word(8), next, 8, 10, kUnits, early}) == units(10, 30));
    CHECK(device.at(next) == (smt::kFinalFrontier | smt::kBegunFrontier));
    CHECK(smt::door_reached(device.at(next), 10, 20) == 30);
    CHECK(device.at(next + 4) == 5);
    // Without a stop later units move the frontier as ever.
    const uint64_t begun = device.words({smt::kBegunFrontier, 0});
    CHECK(device.run({device.word(0), begun, 8, 10, kUnits, early}) == units(10, kUnits));
    CHECK(device.at(begun) == (smt::kBegunFrontier | (how == smt::kDoorDecides ? kUnits + 8 : kUnits)));
    CHECK(device.at(begun + 4) == smt::kBegunFrontier);
}

TEST_CASE("a run that sees a stop at its end decides against the next one") {
    DoorDevice device;
    const uint64_t frontiers = device.words({smt::kBegunFrontier, 5, 0});
    const smt::DoorStep all_early{3, 1, kUnits};
    CHECK(device.run({device.word(7), frontiers, 7, 0, kUnits, all_early}) == units(0, kUnits));
    CHECK(device.at(frontiers + 4) == (smt::kFinalFrontier | 5));
    CHECK(device.run({device.word(0), frontiers + 4, 8, 0, kUnits, all_early}) == units(0, 5));
    CHECK(device.at(frontiers + 8) == 0);
}

TEST_CASE("a run that is refused decides on nothing, and one that has begun by itself is not begun again") {
    DoorDevice device;
    const smt::DoorStep early{3, 1, 20};
    const uint64_t frontiers = device.words({0, 0, 16});
    CHECK(device.run({device.word(7), frontiers, 7, 0, kUnits, early}).empty());
    CHECK(device.at(frontiers) == smt::kFinalFrontier);
    CHECK(device.at(frontiers + 4) == 0);
    CHECK(device.run({device.word(7), frontiers + 4, 8, 0, kUnits, early}) == units(0, kUnits));
    CHECK(device.at(frontiers + 8) == 16);
}

TEST_CASE("all threads of a CTA are admitted or refused, whatever its width") {
    DoorDevice device;
    for (const uint32_t threads : {2u, 32u, 66u, 256u}) {
        CHECK(device.run({device.word(1), device.word(5), 1, 0, kUnits, kStep}, threads) == units(0, 5));
    }
}
