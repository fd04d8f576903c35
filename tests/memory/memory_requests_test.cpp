// The rule of turns for want of memory, in virtual time: allocations without room.
#include <catch2/catch.hpp>

#include "tests/memory/turns_device.h"

namespace smt::tests::turns {

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

}  // namespace smt::tests::turns
