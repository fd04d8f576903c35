// The rule of turns for want of memory, in virtual time: whose turn it is, and for how long.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/memory/turns_device.h"

namespace smt::tests::turns {

TEST_CASE("memory turns: an idle program leaves as much as is needed", "[memory_turns]") {
    Device device(80 * kGiB);
    device.add(1, 40 * kGiB);
    device.settle();
    device.now += 1s;
    device.add(2, 0).asks = 70 * kGiB;
    device.of(2).works = true;
    device.settle();
    CHECK(device.of(2).here == 70 * kGiB);
    CHECK(device.of(1).out);
    CHECK(device.of(1).here == 10 * kGiB);  // only what was needed
    CHECK(device.refused == 0);
}

TEST_CASE("memory turns: the idle one's next call comes soon", "[memory_turns]") {
    Device device(80 * kGiB);
    device.add(1, 40 * kGiB);
    device.settle();
    device.now += 1s;
    device.add(2, 0).asks = 70 * kGiB;
    device.of(2).works = true;
    device.settle();
    device.now += 100s;  // the training's turn is long over
    const TimePoint asked = device.now;
    device.of(1).works = true;
    device.settle();
    CHECK_FALSE(device.of(1).out);
    CHECK(device.now - asked < 4s);  // 30 GiB out and 30 in
    // Its cell is over: the training goes on after the grace, and not at the end of the turn.
    device.of(1).works = false;
    const TimePoint idle = device.now;
    while (device.of(2).out && device.now < idle + 60s) {
        device.settle();
        device.now += 10ms;
    }
    CHECK_FALSE(device.of(2).out);
    CHECK(device.now - idle < MemoryTurns::kMostGrace + 4s);
}

namespace {

// A notebook of 40 GiB whose cells take 50 ms, and a training of 70 that always computes, on 80; both
// directions of the bus together carry 70 a second, so a change of places takes 0.86 s.
struct Cells {
    explicit Cells(double for_calls = kForCalls) : device(80 * kGiB, 0.1, for_calls) {
        device.speed = 70.0 * kGiB;
        device.add(1, 40 * kGiB);
        device.settle();
        device.now += 2s;
        device.add(2, 0).asks = 70 * kGiB;
        device.of(2).works = true;
        device.settle();
        REQUIRE(device.of(1).out);
        device.now += 60s;  // it has computed for a while, and its turn goes on, or begins anew
        begun = device.now;
        device.moving = {};
    }
    void pass(MemoryTurns::Duration time) {
        for (const TimePoint until = device.now + time; device.now < until;) {
            device.settle();
            if (!device.of(2).out) training += 10ms;
            device.now += 10ms;
        }
    }
    // Each so long after the result of the one before.
    void run(int count, MemoryTurns::Duration pause) {
        for (int i = 0; i < count; ++i) {
            pass(pause);
            const TimePoint asked = device.now;
            device.of(1).works = true;
            for (device.settle(); device.of(1).out; device.settle()) pass(10ms);
            pass(50ms);
            device.of(1).works = false;
            waits.push_back(device.now - asked);
        }
        pass(3s);  // until the training is back
        CHECK_FALSE(device.of(2).out);
    }
    MemoryTurns::Duration longest(size_t from = 0) const {
        return *std::max_element(waits.begin() + static_cast<std::ptrdiff_t>(from), waits.end());
    }
    double part(MemoryTurns::Duration of) const {
        return std::chrono::duration<double>(of) / std::chrono::duration<double>(device.now - begun);
    }

    Device device;
    TimePoint begun;
    std::vector<MemoryTurns::Duration> waits;
    MemoryTurns::Duration training{};
};

}  // namespace

TEST_CASE("memory turns: a notebook's calls are served soon beside a training", "[memory_turns]") {
    for (const auto pause : {2s, 4s, 10s}) {
        Cells cells;
        cells.run(6, pause);
        CHECK(cells.longest() < 1500ms);
        cells.run(100, pause);
        CAPTURE(pause.count(), cells.part(cells.training), cells.part(cells.device.moving));
        CHECK(cells.longest() < (pause == 2s ? 6s : 2s));  // every 2 s is more often than the moves allow
        CHECK(cells.part(cells.device.moving) < 0.36);     // with what was put by
        CHECK(cells.part(cells.training) > (pause == 10s ? 0.75 : 0.45));
    }
}

TEST_CASE("memory turns: calls that come all the time take no more moves than the part for them",
          "[memory_turns]") {
    for (const double for_calls : {0.1, 0.2, 0.33, 0.6}) {
        Cells cells(for_calls);
        cells.run(100, 1s);
        CAPTURE(for_calls, cells.part(cells.training), cells.part(cells.device.moving));
        CHECK(cells.part(cells.device.moving) < for_calls + 0.1);
        CHECK(cells.part(cells.training) > 0.9 - 1.6 * for_calls);
    }
}

TEST_CASE("memory turns: without a part for calls they wait for the turn's end", "[memory_turns]") {
    Cells cells(0);
    cells.run(20, 2s);
    CHECK(cells.longest(3) > 5s);
}

TEST_CASE("memory turns: a turn that calls end is no longer for that", "[memory_turns]") {
    Cells cells;
    cells.run(20, 4s);
    Program& third = cells.device.add(3, 0);
    third.works = true;
    third.asks = 30 * kGiB;
    const TimePoint asked = cells.device.now;
    while (third.asks && cells.device.now < asked + 100s) cells.pass(10ms);
    CHECK(cells.device.now - asked < 20s);
}

TEST_CASE("memory turns: a turn that a call has ended goes on for a while before the next call",
          "[memory_turns]") {
    Cells cells;
    Device& device = cells.device;
    cells.run(1, 4s);  // the training is back from that call
    for (int i = 0; i < 3; ++i) {
        device.of(1).works = true;
        for (device.settle(); device.of(1).out; device.settle()) cells.pass(10ms);
        device.of(1).works = false;
        while (device.of(2).out) cells.pass(10ms);
        const MemoryTurns::Duration before = cells.training;
        device.of(1).works = true;  // at once
        while (!device.of(2).out) cells.pass(10ms);
        CHECK(cells.training - before >= MemoryTurns::kLeastTurn - 10ms);
    }
}

TEST_CASE("memory turns: a busy program cuts no turn short", "[memory_turns]") {
    Device device(10 * kGiB);
    device.add(1, 8 * kGiB).works = true;
    device.add(2, 0).asks = 8 * kGiB;
    device.of(2).works = true;
    device.settle();
    device.now += 1s;  // of a turn of 3 s
    device.settle();
    CHECK(device.of(1).out);
}

TEST_CASE("memory turns: moves take the part of a turn that they may", "[memory_turns]") {
    for (const double part : {0.1, 0.3}) {
        for (const uint32_t count : {2u, 4u}) {
            Device device(50 * kGiB, part);
            for (uint32_t id = 1; id <= count; ++id) {
                Program& program = device.add(id, id == 1 ? 40 * kGiB : 0);
                if (id == 1) continue;
                program.out = true;
                program.away = 40 * kGiB;
            }
            const auto time = 1000s;
            const std::vector<double> here = device.run(time);
            const auto [least, most] = std::minmax_element(here.begin(), here.end());
            CHECK(*least > 0.8 * *most);  // none starves
            const double moving = std::chrono::duration<double>(device.moving).count();
            CHECK(moving < 1.05 * part * std::chrono::duration<double>(time).count());
            CHECK(moving > 0.5 * part * std::chrono::duration<double>(time).count());
        }
    }
}

TEST_CASE("memory turns: a turn is kept, and requests wait for its end", "[memory_turns]") {
    Device device(10 * kGiB);
    device.add(1, 8 * kGiB).works = true;
    device.add(2, 0).asks = 8 * kGiB;
    device.of(2).works = true;
    device.settle();
    REQUIRE(device.of(1).out);
    // 6 GiB were moved for it at 20 GiB a second, so a turn of 3 s.
    const Step step = device.settle();
    CHECK(step.what == What::kNothing);
    CHECK(step.again > device.now + 2500ms);
    CHECK(step.again < device.now + 3500ms);
    device.now += 2s;
    device.settle();
    CHECK(device.of(1).out);
    CHECK(device.turns.waits(1, device.now) >= 2s);
    CHECK(device.turns.waits(2, device.now) == 0s);
    device.now = step.again;
    device.settle();
    CHECK_FALSE(device.of(1).out);
    CHECK(device.turns.turns(1) == 1);
}

}  // namespace smt::tests::turns
