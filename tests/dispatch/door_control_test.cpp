// Frontiers and run numbers: which words a run gets, when they are cleared, and what a stop writes.
#include "runtime/dispatch/door_control.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

namespace smt::runtime::dispatch {

namespace {

constexpr CUdeviceptr kMemory = 0x100000;  // the first that the driver gives
constexpr uint64_t kRing = DoorMemory::kFrontiers, kHalfRing = kRing / 2;
const CUstream kProgramStream = reinterpret_cast<CUstream>(1), kControlStream = reinterpret_cast<CUstream>(2);

// What the driver was asked, in order.
struct DriverCall {
    enum class Task { kClear, kWrite, kCopy, kAwait } task;
    CUstream stream;
    CUdeviceptr at = 0;
    uint64_t bytes = 0;  // kWrite: the value
    void* to = nullptr;
    bool operator==(const DriverCall&) const = default;
};
using Task = DriverCall::Task;
std::vector<DriverCall> door_calls;
unsigned door_pieces = 0, door_pieces_freed = 0;
CUresult door_waits_end = CUDA_SUCCESS;

DriverApi recording_driver() {
    door_calls.clear();
    door_pieces = door_pieces_freed = 0;
    door_waits_end = CUDA_SUCCESS;
    DriverApi driver{};
    driver.cuMemAlloc_v2 = [](CUdeviceptr* memory, size_t bytes) {
        CHECK(bytes == DoorMemory::kBytes);
        *memory = kMemory * ++door_pieces;
        return CUDA_SUCCESS;
    };
    driver.cuMemFree_v2 = [](CUdeviceptr) { return ++door_pieces_freed, CUDA_SUCCESS; };
    driver.cuStreamSynchronize = [](CUstream stream) {
        door_calls.push_back({Task::kAwait, stream});
        return door_waits_end;
    };
    driver.cuMemsetD8Async = [](CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) {
        CHECK(value == 0);
        door_calls.push_back({Task::kClear, stream, at, bytes});
        return CUDA_SUCCESS;
    };
    driver.cuStreamWriteValue32_v2 = [](CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned) {
        door_calls.push_back({Task::kWrite, stream, at, value});
        return CUDA_SUCCESS;
    };
    driver.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr at, size_t bytes, CUstream stream) {
        door_calls.push_back({Task::kCopy, stream, at, bytes, to});
        return CUDA_SUCCESS;
    };
    return driver;
}

CUdeviceptr frontier_at(uint64_t place, CUdeviceptr memory = kMemory) {
    return memory + DoorMemory::kFrontiersAt + place * sizeof(uint32_t);
}

struct Run {
    smt::DoorLaunch door;
    uint64_t number = 0;
    bool anew = false;
};

Run run_on(DoorControl& control, bool idle = false) {
    Run run;
    REQUIRE(control.prepare(kProgramStream, kControlStream, idle, &run.anew) == CUDA_SUCCESS);
    run.door = control.next_run(3, 11, {5, 1, true}, true, &run.number);
    return run;
}

}  // namespace

TEST_CASE("door control: runs take one frontier behind the other, from a ring", "[dispatch]") {
    const DriverApi driver = recording_driver();
    DoorMemory memory(driver);
    DoorControl control(memory);
    for (uint64_t number = 0; number < 2 * kRing + 10; ++number) {
        const Run run = run_on(control);
        REQUIRE(run.number == number);
        REQUIRE(run.door.frontier == frontier_at(number % kRing));
        REQUIRE(run.door.run == number + 1);
        REQUIRE(run.door.stopped == kMemory);
    }
    const Run run = run_on(control);
    CHECK((run.door.from == 3 && run.door.to == 11 && run.door.step.shift == 5));
    CHECK(door_pieces == 1);
}

TEST_CASE("door control: a half of the ring is cleared before its first run, in the stream's order",
          "[dispatch]") {
    const DriverApi driver = recording_driver();
    DoorMemory memory(driver);
    DoorControl control(memory);
    CHECK(run_on(control).anew);
    // Where a stop of the last user's may be on its way.
    CHECK(door_calls == std::vector<DriverCall>{{Task::kAwait, kControlStream},
                                                {Task::kClear, kProgramStream, kMemory, DoorMemory::kBytes}});
    std::map<uint64_t, DriverCall> cleared;  // by the run before which that was
    for (uint64_t number = 1; number < 3 * kRing; ++number) {
        door_calls.clear();
        CHECK_FALSE(run_on(control).anew);
        for (const DriverCall& each : door_calls) cleared.emplace(number, each);
    }
    const auto half = [](uint64_t which) {
        return DriverCall{Task::kClear, kProgramStream, frontier_at(which * kHalfRing),
                          kHalfRing * sizeof(uint32_t)};
    };
    // So what is cleared was last used kHalfRing runs ago, and kMostDoorRuns are in flight.
    CHECK(cleared == std::map<uint64_t, DriverCall>{{kHalfRing - 1, half(1)},
                                                    {2 * kHalfRing - 1, half(0)},
                                                    {3 * kHalfRing - 1, half(1)},
                                                    {4 * kHalfRing - 1, half(0)},
                                                    {5 * kHalfRing - 1, half(1)},
                                                    {6 * kHalfRing - 1, half(0)}});
    static_assert(kHalfRing > kMostDoorPlaces);
}

TEST_CASE("door control: a stop writes the last run's number", "[dispatch]") {
    const DriverApi driver = recording_driver();
    DoorMemory memory(driver);
    DoorControl control(memory);
    for (int i = 0; i < 7; ++i) run_on(control);
    door_calls.clear();
    CHECK(control.stop(kControlStream) == CUDA_SUCCESS);
    CHECK(run_on(control).door.run == 8);
    CHECK(control.stop(kControlStream) == CUDA_SUCCESS);
    CHECK(door_calls == std::vector<DriverCall>{{Task::kWrite, kControlStream, kMemory, 7},
                                                {Task::kWrite, kControlStream, kMemory, 8}});
}

TEST_CASE("door control: a stop is of the last segment, which has a word of its own", "[dispatch]") {
    const DriverApi driver = recording_driver();
    DoorMemory memory(driver);
    DoorControl control(memory);
    CHECK(run_on(control).door.stopped == kMemory);
    control.end_segment();
    control.end_segment();
    door_calls.clear();
    CHECK(control.stop(kControlStream) == CUDA_SUCCESS);
    CHECK(door_calls.empty());  // no run can be stopped
    CHECK(run_on(control).door.stopped == kMemory + sizeof(uint32_t));
    CHECK(run_on(control).door.stopped == kMemory + sizeof(uint32_t));
    CHECK(control.stop(kControlStream) == CUDA_SUCCESS);
    CHECK(door_calls ==
          std::vector<DriverCall>{{Task::kWrite, kControlStream, kMemory + sizeof(uint32_t), 3}});
    std::vector<CUdeviceptr> words;
    for (uint32_t i = 0; i < kMostDoorRuns; ++i) {
        control.end_segment();
        words.push_back(run_on(control).door.stopped);
    }
    std::sort(words.begin(), words.end());
    CHECK(std::adjacent_find(words.begin(), words.end()) == words.end());
    CHECK(words.back() < frontier_at(0));
}

TEST_CASE("door control: a run that was not launched leaves no gap", "[dispatch]") {
    const DriverApi driver = recording_driver();
    DoorMemory memory(driver);
    DoorControl control(memory);
    for (uint64_t number = 0; number < kHalfRing; ++number) run_on(control);
    const Run failed = run_on(control);
    control.take_back();
    door_calls.clear();
    const Run next = run_on(control);
    CHECK(next.number == failed.number);
    CHECK(next.door.run == failed.door.run);
    CHECK(next.door.frontier == failed.door.frontier);
    CHECK(door_calls.empty());  // its half was cleared, and it is not used
}

TEST_CASE("door control: a report across the ring's end is of two pieces", "[dispatch]") {
    const DriverApi driver = recording_driver();
    DoorMemory memory(driver);
    DoorControl control(memory);
    run_on(control);
    Frontiers pinned{};
    const auto reported = [&](uint64_t first, uint64_t last) {
        door_calls.clear();
        CHECK(control.report(kProgramStream, first, last, pinned.data()) == CUDA_SUCCESS);
        return door_calls;
    };
    using Calls = std::vector<DriverCall>;
    CHECK(reported(0, 0) == Calls{{Task::kCopy, kProgramStream, frontier_at(0), 4, &pinned[0]}});
    CHECK(reported(5 * kRing + 9, 5 * kRing + 11) ==
          Calls{{Task::kCopy, kProgramStream, frontier_at(9), 12, &pinned[0]}});
    CHECK(reported(kRing - 64, kRing - 1) ==
          Calls{{Task::kCopy, kProgramStream, frontier_at(kRing - 64), 256, &pinned[0]}});
    CHECK(reported(kRing - 3, kRing + 1) ==
          Calls{{Task::kCopy, kProgramStream, frontier_at(kRing - 3), 12, &pinned[0]},
                {Task::kCopy, kProgramStream, frontier_at(0), 8, &pinned[3]}});
    // Never more than there is room for.
    CHECK(reported(0, kMostDoorPlaces) ==
          Calls{{Task::kCopy, kProgramStream, frontier_at(0), 512, &pinned[0]}});
}

TEST_CASE("door control: only a quick run takes the frontier that the one in front decides on",
          "[dispatch]") {
    const DriverApi driver = recording_driver();
    DoorMemory memory(driver);
    DoorControl control(memory);
    constexpr DoorPace kLong{3, 1, false}, kQuick{3, 1, true};
    const auto place_of = [&](const DoorPace& pace, bool asks = true) {
        Run run;
        REQUIRE(control.prepare(kProgramStream, kControlStream, false, &run.anew) == CUDA_SUCCESS);
        run.door = control.next_run(0, 1, pace, asks, &run.number);
        CHECK((run.door.run != 0) == asks);
        CHECK((run.door.step.how & kDoorDecides) == asks);
        return run.number;
    };
    CHECK(place_of(kLong) == 0);
    CHECK(place_of(kQuick) == 1);
    CHECK(place_of(kQuick) == 2);
    CHECK(place_of(kLong) == 4);
    CHECK(place_of(kQuick) == 5);
    CHECK(place_of(kQuick, false) == 7);  // it goes on, so it decides on nothing
    CHECK(place_of(kQuick) == 8);
    control.end_segment();
    CHECK(place_of(kQuick) == 10);
    control.stop(kControlStream);  // 10 may have seen it, and decided against 11
    CHECK(place_of(kQuick) == 12);
    CHECK(place_of(kLong) == 14);
    control.take_back();
    CHECK(place_of(kQuick) == 14);
    CHECK(place_of(kQuick) == 15);
    control.take_back();
    CHECK(place_of(kLong) == 16);
    control.stop(kControlStream);
    CHECK(place_of(kLong) == 18);
}

TEST_CASE("door control: half a ring is cleared before it is decided on, and no frontier is behind the last",
          "[dispatch]") {
    const DriverApi driver = recording_driver();
    DoorMemory memory(driver);
    DoorControl control(memory);
    for (uint64_t number = 0; number < kHalfRing - 1; ++number) run_on(control);
    door_calls.clear();
    CHECK(run_on(control).number == kHalfRing - 1);
    CHECK(door_calls == std::vector<DriverCall>{{Task::kClear, kProgramStream, frontier_at(kHalfRing),
                                                 kHalfRing * sizeof(uint32_t)}});
    for (uint64_t number = kHalfRing; number < kRing - 1; ++number)
        CHECK(run_on(control).door.step.how == kDoorDecides);
    CHECK(run_on(control).door.step.how == 0);
    CHECK(run_on(control).number == kRing);
}

TEST_CASE("door control: early units are those that run at once, or all of a launch that is soon over",
          "[dispatch]") {
    constexpr uint64_t kUs = 1'000'000;
    const auto pace = [](uint64_t blocks, uint64_t places, uint64_t block_ps) {
        return door_pace(blocks, 1, places, block_ps, false);
    };
    CHECK_FALSE(pace(100, 50, 0).quick);
    CHECK(pace(100, 50, 0).early == 50);
    CHECK((pace(100, 50, kUs / 5).quick && pace(100, 50, kUs / 5).early == 100));
    CHECK((pace(100, 50, kUs / 3).quick && pace(100, 50, kUs / 3).early == 50));  // two waves of 17 us
    CHECK_FALSE(pace(100, 50, kUs).quick);
    CHECK(door_pace(800, 8, 400, kUs / 20, false).early == 50);  // clusters
    CHECK(pace(1 << 29, 1 << 20, 1).early == UINT16_MAX);
    CHECK(door_pace(1 << 29, 1, 1 << 29, 0, true).shift == 28);
    CHECK(door_pace(1 << 29, 1, 1 << 20, 0, true).shift < 28);
    CHECK(door_step({3, 4000, true}, false, true).early == 4000);
    CHECK(door_step({3, 4000, true}, true, false).early == 256);
}

TEST_CASE("door control: launches of long units are exact, unless that costs them much", "[dispatch]") {
    constexpr uint64_t kUs = 1'000'000;
    CHECK(door_pace(4000, 1, 132, kUs * 90 / 132, false).exact);
    CHECK_FALSE(door_pace(4000, 1, 132, 0, false).exact);
    CHECK_FALSE(door_pace(4000, 1, 132, kUs * 20 / 132, false).exact);      // short
    CHECK(door_pace(4000, 2, 132, kUs * 90 / 132, false).exact);            // clusters
    CHECK_FALSE(door_pace(32'000, 1, 4224, kUs * 40 / 4224, false).exact);  // many at once
    CHECK(door_pace(640'000, 1, 4224, kUs * 40 / 4224, false).exact);
    CHECK_FALSE(door_pace(64'000'000, 1, 8448, kUs * 40 / 8448, false).exact);  // one behind the other
    const DoorPace exact{.shift = 3, .early = 4000, .exact = true};
    CHECK(door_step(exact, false, false).how == kDoorExact);
    CHECK(door_step(exact, true, false).how == (kDoorExact | kDoorDecides));
}

TEST_CASE("door control: long units that may wait find all of a small launch, or their group, whole",
          "[dispatch]") {
    constexpr uint64_t kUs = 1'000'000;
    const DoorPace all_at_once = door_pace(130, 1, 132, kUs * 90 / 130, true);
    CHECK_FALSE(all_at_once.exact);
    CHECK((uint64_t{1} << all_at_once.shift) > 130);
    const DoorPace waves = door_pace(4000, 1, 130, kUs * 90 / 130, true);
    CHECK(waves.exact);
    CHECK(waves.early == 128);  // whole groups
    CHECK(door_step(waves, true, true).how == (kDoorDecides | kDoorExact | 3 << kDoorGroupAt));
    CHECK(door_pace(4000, 1, 130, kUs * 90 / 130, false).early == 130);
    CHECK(door_pace(40, 1, 3, kUs * 90 / 3, true).early == 3);  // there is no smaller number
}

TEST_CASE("door control: run numbers begin again on an idle stream only", "[dispatch]") {
    const DriverApi driver = recording_driver();
    DoorMemory memory(driver);
    DoorControl control(memory, 10);
    for (uint32_t run = 1; run <= 10; ++run) {
        CHECK_FALSE(control.used_up());
        CHECK(run_on(control, true).door.run == run);
    }
    CHECK(control.used_up());
    CHECK(run_on(control, false).door.run == 11);
    door_calls.clear();
    const Run again = run_on(control, true);
    CHECK(again.anew);
    CHECK(again.door.run == 1);
    CHECK(again.door.frontier == frontier_at(11));
    CHECK(door_calls == std::vector<DriverCall>{{Task::kAwait, kControlStream},
                                                {Task::kClear, kProgramStream, kMemory, DoorMemory::kBytes}});
    CHECK_FALSE(control.used_up());
}

TEST_CASE("door control: memory is handed on, not freed, and cleared for its next user", "[dispatch]") {
    const DriverApi driver = recording_driver();
    {
        DoorMemory memory(driver);
        {
            const DoorControl unused(memory);
        }
        CHECK(door_pieces + door_pieces_freed == 0);  // a stream without doors takes none
        CUdeviceptr last = 0;
        {
            DoorControl one(memory), other(memory);
            CHECK(run_on(one).door.stopped == kMemory);
            last = run_on(other).door.stopped;
            CHECK(last == 2 * kMemory);
        }
        CHECK(door_pieces_freed == 0);  // the driver would wait for all tenants' work
        door_calls.clear();
        DoorControl next(memory);
        const CUdeviceptr given = run_on(next).door.stopped;
        CHECK(door_pieces == 2);
        CHECK(door_calls ==
              std::vector<DriverCall>{{Task::kAwait, kControlStream},
                                      {Task::kClear, kProgramStream, given, DoorMemory::kBytes}});
    }
    CHECK(door_pieces_freed == 2);
}

TEST_CASE("door control: without memory, or if it cannot be cleared, no run begins", "[dispatch]") {
    DriverApi driver = recording_driver();
    DoorMemory memory(driver);
    DoorControl control(memory);
    bool anew = false;
    door_waits_end = CUDA_ERROR_UNKNOWN;
    CHECK(control.prepare(kProgramStream, kControlStream, true, &anew) == CUDA_ERROR_UNKNOWN);
    door_waits_end = CUDA_SUCCESS;
    door_calls.clear();
    CHECK(run_on(control).anew);  // it is cleared now
    CHECK(door_calls.size() == 2);
    driver.cuMemAlloc_v2 = [](CUdeviceptr*, size_t) { return CUDA_ERROR_OUT_OF_MEMORY; };
    DoorControl poor(memory);
    CHECK(poor.prepare(kProgramStream, kControlStream, true, &anew) == CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace smt::runtime::dispatch
