// The rule of turns for want of memory, in virtual time: a device of which programs have more than it has.
#include "runtime/server/memory/memory_turns.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;
using Program = MemoryTurns::Program;
using Step = MemoryTurns::Step;
using What = Step::What;
using TimePoint = MemoryTurns::TimePoint;

constexpr uint64_t kGiB = 1ull << 30;
constexpr double kSpeed = 20.0 * kGiB;  // bytes a second, if nothing else is said
constexpr double kForCalls = 0.33;

// Carries steps out as the server does, and counts.
struct Device {
    explicit Device(uint64_t bytes, double part = 0.1, double for_calls = kForCalls)
        : turns(part, for_calls), total(bytes) {}

    Program& add(uint32_t id, uint64_t bytes) {
        programs.push_back({.id = id, .here = bytes});
        return of(id);
    }
    Program& of(uint32_t id) {
        return *std::find_if(programs.begin(), programs.end(), [&](const Program& p) { return p.id == id; });
    }
    uint64_t free() const {
        uint64_t used = 0;
        for (const Program& each : programs) used += each.here;
        if (used > total) FAIL("more than the device has");  // thousands of times a test
        return total - used;
    }
    // Until there is nothing to do now. The last step; a grant is taken at once.
    Step settle() {
        for (int steps = 0; steps < 100; ++steps) {
            const Step step = turns.next(programs, free(), now);
            if (step.what == What::kNothing) return step;
            Program& program = of(step.id);
            if (step.what == What::kOut) {
                const uint64_t bytes = std::min(step.bytes + step.ahead, program.here);
                CHECK(bytes > 0);
                ++moves_out;
                program.out = true;
                program.here -= bytes;
                program.away += bytes;
                out += bytes;
                move(step.requester, bytes);
            } else if (step.what == What::kIn) {
                const uint64_t bytes = program.away;
                program.out = false;
                program.here += bytes;
                program.away = 0;
                if (step.with) {  // and its allocation, which it frees soon
                    CHECK(step.with == program.asks);
                    CHECK(free() >= program.asks);
                    program.asks = 0;
                    ++served_with[program.id];
                }
                move(step.id, bytes);
                turns.served(step.id, now);
            } else if (step.what == What::kGrant) {
                program.here += program.asks;
                program.asks = 0;
                turns.served(step.id, now);
            } else {
                program.asks = 0;
                ++refused;
                return step;
            }
        }
        FAIL("no end of steps");
        return {};
    }
    void move(uint32_t requester, uint64_t bytes) {
        const auto took = std::chrono::duration_cast<MemoryTurns::Duration>(
            std::chrono::duration<double>(static_cast<double>(bytes) / speed));
        turns.moved(requester, bytes, took);
        now += took;
        moving += took;
    }
    // All programs work without a pause; the time that each was here, by its place in `programs`.
    std::vector<double> run(MemoryTurns::Duration time) {
        std::vector<double> here(programs.size());
        for (Program& each : programs) each.works = true;
        const TimePoint until = now + time;
        while (now < until) {
            settle();
            for (size_t i = 0; i < programs.size(); ++i)
                if (!programs[i].out) here[i] += std::chrono::duration<double>(10ms).count();
            now += 10ms;
        }
        return here;
    }

    MemoryTurns turns;
    const uint64_t total;
    double speed = kSpeed;
    std::vector<Program> programs;
    TimePoint now = TimePoint(1000s);
    uint64_t out = 0;
    int moves_out = 0;
    MemoryTurns::Duration moving{};
    int refused = 0;
    std::map<uint32_t, int> served_with;  // program -> allocations that came in with it
};

}  // namespace

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

TEST_CASE("memory turns: the first request is served first", "[memory_turns]") {
    Device device(10 * kGiB);
    for (uint32_t id = 1; id <= 3; ++id) {
        Program& program = device.add(id, id == 1 ? 8 * kGiB : 0);
        program.works = id == 1;
        if (id == 1) continue;
        program.out = true;
        program.away = 8 * kGiB;
    }
    device.settle();
    device.now += 1s;
    device.of(3).works = true;
    device.settle();
    CHECK_FALSE(device.of(3).out);
    device.of(1).works = false;
    device.settle();
    device.of(2).works = true;
    device.settle();
    device.of(1).works = true;  // behind 2
    CHECK(device.of(2).out);
    device.now = device.settle().again;
    device.settle();
    CHECK_FALSE(device.of(2).out);
    CHECK(device.of(1).out);
}

TEST_CASE("memory turns: an allocation within a turn is served in it", "[memory_turns]") {
    Device device(10 * kGiB);
    device.add(1, 8 * kGiB).works = true;
    device.add(2, 0).asks = 4 * kGiB;
    device.of(2).works = true;
    device.settle();
    REQUIRE(device.of(1).out);  // and asks to come in
    const uint64_t before = device.of(2).here;
    device.of(2).asks = 5 * kGiB;
    device.settle();
    CHECK(device.of(2).here == before + 5 * kGiB);
    CHECK(device.turns.turns(2) == 1);
}

TEST_CASE("memory turns: two allocations that need each other's memory", "[memory_turns]") {
    Device device(10 * kGiB);
    device.add(1, 5 * kGiB).works = true;
    device.add(2, 5 * kGiB).works = true;
    device.of(1).asks = 3 * kGiB;
    device.of(2).asks = 3 * kGiB;
    device.settle();
    CHECK(device.of(1).here == 8 * kGiB);
    CHECK(device.of(2).out);  // it waits in front of its gate, and asks again when it is in
    device.of(2).asks = 0;
    device.now += 100s;
    device.settle();
    CHECK_FALSE(device.of(2).out);
    device.of(2).asks = 3 * kGiB;
    device.settle();
    CHECK(device.of(2).here == 8 * kGiB);
    CHECK(device.refused == 0);
}

TEST_CASE("memory turns: an allocation that waits keeps its place while its program is out",
          "[memory_turns]") {
    Device device(10 * kGiB);
    for (uint32_t id = 1; id <= 4; ++id) {
        Program& program = device.add(id, id == 1 ? 8 * kGiB : 0);
        program.works = true;
        if (id == 1) continue;
        program.out = true;
        program.away = 8 * kGiB;
    }
    device.settle();
    for (int turn = 0; turn < 20; ++turn) {
        // Each is so slow that it asks for what it needs just when its turn is over.
        for (Program& each : device.programs)
            if (!each.out) each.asks = kGiB;
        device.now += 100s;
        device.settle();
    }
    for (uint32_t id = 1; id <= 4; ++id) CHECK(device.served_with[id] >= 3);
    CHECK(device.refused == 0);
}

TEST_CASE("memory turns: an allocation that has no room whatever moves is told of it", "[memory_turns]") {
    Device device(10 * kGiB);
    device.add(1, 8 * kGiB).works = true;
    Program& second = device.add(2, 0);
    second.out = second.works = true;
    second.away = 8 * kGiB;
    second.asks = 4 * kGiB;
    CHECK(device.settle().what == What::kRefuse);
    CHECK_FALSE(device.of(2).out);
}

TEST_CASE("memory turns: allocations one soon after the other wait for few moves", "[memory_turns]") {
    const auto allocate = [](Device& device, int count, MemoryTurns::Duration pause) {
        for (int i = 0; i < count; ++i) {
            device.now += pause;
            if (device.free() >= kGiB) {
                device.of(2).here += kGiB;
                continue;
            }
            device.of(2).asks = kGiB;
            device.settle();
            REQUIRE(device.of(2).asks == 0);
        }
    };
    Device soon(80 * kGiB);
    soon.add(1, 60 * kGiB);
    soon.add(2, 20 * kGiB);
    soon.now += 10s;
    soon.settle();
    allocate(soon, 24, 10ms);
    CHECK(soon.moves_out == 6);  // 1, 1, 2, 4, 8, 16
    CHECK(soon.out == 32 * kGiB);
    allocate(soon, 1, 2s);
    CHECK(soon.moves_out == 6);  // there was room

    Device late(80 * kGiB);
    late.add(1, 60 * kGiB);
    late.add(2, 20 * kGiB);
    late.now += 10s;
    late.settle();
    allocate(late, 5, 2s);
    CHECK(late.out == 5 * kGiB);

    // What came in with its program was no allocation.
    Device after_turn(80 * kGiB);
    after_turn.add(1, 60 * kGiB);
    Program& second = after_turn.add(2, 0);
    second.away = 50 * kGiB;
    second.out = second.works = true;
    after_turn.now += 10s;
    after_turn.settle();
    REQUIRE(!after_turn.of(2).out);
    REQUIRE(after_turn.out == 30 * kGiB);
    allocate(after_turn, 1, 10ms);
    CHECK(after_turn.out == 31 * kGiB);
}

TEST_CASE("memory turns: a program that takes what it was given is not moved", "[memory_turns]") {
    Device device(10 * kGiB);
    device.add(1, 8 * kGiB).works = true;
    Program& second = device.add(2, 0);
    second.out = second.works = true;
    second.away = 8 * kGiB;
    device.of(1).held = true;
    CHECK(device.settle().what == What::kNothing);
    CHECK(device.settle().again <= device.now + MemoryTurns::kLeastGrace);
    device.of(1).held = false;
    device.settle();
    CHECK_FALSE(device.of(2).out);
}

TEST_CASE("memory turns: what is free for an allocation no program that is out gets, which may still leave",
          "[memory_turns]") {
    Device device(10 * kGiB);
    device.add(1, 6 * kGiB).works = true;
    Program& second = device.add(2, 3 * kGiB);
    second.works = second.out = second.later = true;
    second.away = kGiB;
    CHECK(device.turns.next(device.programs, kGiB, device.now).what == What::kNothing);
    device.of(1).asks = 2 * kGiB;
    const Step step = device.turns.next(device.programs, kGiB, device.now);
    CHECK((step.what == What::kOut && step.id == 2));
    device.of(1).asks = 0;
    second.later = false;
    CHECK(device.turns.next(device.programs, kGiB, device.now).what == What::kIn);
}

TEST_CASE("memory turns: what has no room whatever is moved is refused, and nothing moves",
          "[memory_turns]") {
    Device device(10 * kGiB);
    device.add(1, 5 * kGiB);
    device.settle();
    device.now += 1s;
    device.add(2, 2 * kGiB).asks = 9 * kGiB;  // larger than the device together with what it has
    const Step step = device.settle();
    CHECK(step.what == What::kRefuse);
    CHECK(step.bytes == 1 * kGiB);
    CHECK(device.out == 0);
    device.of(1).stays = true;
    device.of(2).asks = 4 * kGiB;
    CHECK(device.settle().what == What::kRefuse);
    CHECK(device.out == 0);
}

TEST_CASE("memory turns: one that finds no room holds up no other", "[memory_turns]") {
    Device device(10 * kGiB);
    device.add(1, 6 * kGiB).stays = true;
    Program& large = device.add(2, 0);
    large.out = large.works = true;
    large.away = 5 * kGiB;
    device.settle();
    Program& small = device.add(3, 0);
    small.out = small.works = true;
    small.away = 3 * kGiB;
    device.settle();
    CHECK(device.of(2).out);
    CHECK_FALSE(device.of(3).out);
    CHECK(device.turns.missing(2) == kGiB);
    CHECK(device.turns.missing(3) == 0);
    device.of(1).here = 1 * kGiB;  // it has freed some
    device.settle();
    CHECK_FALSE(device.of(2).out);
    CHECK(device.turns.missing(2) == 0);
}

TEST_CASE("memory turns: a call that could end a turn finds no room, and is refused nothing",
          "[memory_turns]") {
    Device device(80 * kGiB);
    device.add(1, 2 * kGiB);
    device.add(2, 0);
    device.now += 10s;
    device.settle();
    device.now += 10s;
    device.of(2).asks = 79 * kGiB;
    device.settle();
    REQUIRE(device.of(1).out);  // it was idle, so a call of it may end a turn
    device.of(2).stays = true;
    device.of(1).works = true;
    device.now += 1s;
    CHECK(device.settle().what == What::kNothing);
    CHECK(device.refused == 0);
    CHECK(device.turns.missing(1) > 0);
    device.of(2).stays = false;
    device.settle();
    CHECK(!device.of(1).out);
    CHECK(device.turns.missing(1) == 0);
}

TEST_CASE("memory turns: nothing moves before there is enough", "[memory_turns]") {
    Device device(10 * kGiB);
    device.add(1, 8 * kGiB).works = true;
    device.add(2, 0).asks = 6 * kGiB;
    device.of(2).works = true;
    device.settle();
    REQUIRE(device.of(1).out);  // 4 GiB of it, and 2 has a turn
    device.of(1).works = false;
    Program& third = device.add(3, 0);
    third.out = third.works = true;
    third.away = 6 * kGiB;
    const uint64_t out = device.out;
    const Step step = device.settle();
    CHECK(step.what == What::kNothing);
    CHECK(device.out == out);  // the rest of 1 would not be enough
    device.now = step.again;
    device.settle();
    CHECK_FALSE(device.of(3).out);
}

TEST_CASE("memory turns: room that is there is no turn", "[memory_turns]") {
    Device device(10 * kGiB);
    Program& program = device.add(1, 0);
    program.out = program.works = true;
    program.away = 0;
    device.settle();
    CHECK_FALSE(device.of(1).out);
    CHECK(device.turns.turns(1) == 0);
}

}  // namespace smt::runtime::server
