// A stream whose kernels have doors, on a GPU of the test's own (door_gpu.h): what is stopped goes on where
// it was, in the program's order.
#include "tests/dispatch/door_stream.h"

#include <catch2/catch.hpp>
#include <random>

namespace smt::runtime::dispatch {

namespace {

using tests::DoorGpu, tests::DoorStream, tests::each_once;
using Seen = schedule::Kernel::State;
constexpr schedule::Duration kAhead = std::chrono::hours(1);
constexpr uint64_t kLongBlockPs = 100'000'000;  // of the whole device

}  // namespace

TEST_CASE("stream with doors: what was stopped goes on where it was, launch after launch", "[dispatch]") {
    std::mt19937_64 random(1);
    for (const auto& [unit, exact] : {std::pair{1u, false}, {4u, false}, {1u, true}, {4u, true}}) {
        DoorStream it;
        if (exact) it.with_door.queued.of(200 * unit, 1).set_block_ps(kLongBlockPs);
        it.begin(5, 200 * unit, unit);
        int stops = 0;
        for (schedule::Kernel kernel; it.gpu.ran.size() < 1000; ++stops) {
            it.gpu.run(random() % 60);
            while (!it.stream->stop()) it.gpu.run(random() % 8);
            kernel = it.come_to_end();
            if (kernel.launch == 0) break;
            REQUIRE(kernel.state == Seen::kWaiting);
            REQUIRE(kernel.has_door);
            REQUIRE_FALSE(kernel.managed);
            const size_t ran = it.gpu.ran.size();
            REQUIRE((kernel.launch - 1) * 200 * unit + kernel.blocks_done == ran * unit);
            if (random() % 3 == 0)  // one of them, and perhaps a part of it
                it.stream->run({}, random() % 2 * (1 + random() % 70));
            else
                it.stream->pass_through();
        }
        it.come_to_end();
        INFO(stops << " stops");
        CHECK(stops > 8);
        CHECK(it.gpu.ran == each_once(5, 200));
    }
}

TEST_CASE("stream with doors: of a launch whose blocks take long none begins after a stop", "[dispatch]") {
    for (const bool exact : {false, true}) {
        DoorStream it;
        if (exact) it.with_door.queued.of(200, 1).set_block_ps(kLongBlockPs);
        it.begin(1, 200);
        it.gpu.run(50);
        REQUIRE(it.stream->stop());
        CHECK((it.come_to_end().blocks_done == 50) == exact);
    }
}

TEST_CASE("stream with doors: a run of one launch ends with what it was for, or when it is halted",
          "[dispatch]") {
    DoorStream it;
    REQUIRE(it.launch(it.with_door, 0, 100) == CUDA_SUCCESS);
    REQUIRE(it.launch(it.with_door, 1, 100) == CUDA_SUCCESS);
    REQUIRE(it.stream->run({}, 20) == CUDA_SUCCESS);
    CHECK(it.come_to_end().blocks_done == 20);
    CHECK(it.gpu.ran.size() == 20);
    REQUIRE(it.stream->run({}, 0) == CUDA_SUCCESS);
    it.gpu.run(20);
    CHECK(it.stream->ready());
    CHECK(it.stream->change({}) == CUDA_SUCCESS);  // a door knows no quotas
    CHECK(it.stream->fill_up() == CUDA_SUCCESS);
    CHECK(it.gpu.launches == 2);
    REQUIRE(it.stream->halt() == CUDA_SUCCESS);
    const schedule::Kernel kernel = it.come_to_end();
    CHECK(kernel.state == Seen::kWaiting);
    CHECK((kernel.launch == 1 && kernel.blocks_done >= 40 && kernel.blocks_done < 100));
    CHECK(it.gpu.ran.size() == kernel.blocks_done);
    REQUIRE(it.stream->run({}, 0) == CUDA_SUCCESS);
    CHECK(it.come_to_end().launch == 2);
    CHECK(it.gpu.ran == each_once(1, 100));
}

TEST_CASE("stream with doors: few runs are in flight at a time", "[dispatch]") {
    DoorStream it;
    it.begin(3 * kMostDoorRuns, 10);
    CHECK(it.gpu.launches == kMostDoorRuns);
    CHECK(it.launch(it.with_door, 3 * kMostDoorRuns, 10) == CUDA_SUCCESS);
    CHECK(it.gpu.launches == kMostDoorRuns);
    it.come_to_end();
    CHECK(it.gpu.launches == 2 * kMostDoorRuns);
    for (int i = 0; i < 3; ++i) it.come_to_end();
    CHECK(it.gpu.ran == each_once(3 * kMostDoorRuns + 1, 10));
    CHECK(it.first().launch == 0);
}

TEST_CASE("stream with doors: what is soon over is not waited for, and a stop leaves it alone",
          "[dispatch]") {
    std::mt19937_64 random(2);
    for (int round = 0; round < 50; ++round) {
        DoorStream it(kAhead);
        it.with_door.queued.of(30, 1).set_block_ps(3000);
        it.begin(0, 1);
        std::vector<DoorGpu::Unit> all;
        for (uint32_t name = 0; name < 20; ++name) {
            REQUIRE(it.launch(it.with_door, name, 30) == CUDA_SUCCESS);
            REQUIRE(it.stream->pass_through() == CUDA_SUCCESS);
            for (uint32_t unit = 0; unit < 30; ++unit) all.emplace_back(name, unit);
            if (random() % 3 == 0) {
                it.gpu.run(random() % 40);
                it.stream->poll();
                REQUIRE(it.stream->guard() == CUDA_SUCCESS);
                it.gpu.enqueue_other(name);
                all.emplace_back(name, DoorGpu::kOther);
            }
            if (random() % 4 == 0) {
                it.gpu.run(random() % 40);
                while (!it.stream->stop()) it.gpu.run(1);
                it.come_to_end();
                it.stream->pass_through();
            }
        }
        it.come_to_end();
        REQUIRE(it.gpu.ran == all);
    }
}

TEST_CASE("stream with doors: what is not worth a stop runs to its end, and overtakes nothing",
          "[dispatch]") {
    std::mt19937_64 random(3);
    uint64_t ends = 0;
    for (int round = 0; round < 100; ++round) {
        DoorStream it(kAhead);
        it.with_door.queued.of(20, 1).set_block_ps(1'000'000);
        it.persistent.form = Form::kDoor;
        it.persistent.queued.of(30, 1).set_block_ps(1);  // less than to be refused
        std::vector<DoorGpu::Unit> all;
        REQUIRE(it.stream->pass_through() == CUDA_SUCCESS);
        for (uint32_t name = 0; name < 30; ++name) {
            const bool worth = random() % 3 == 0;
            const uint32_t blocks = worth ? 20 : 30;
            REQUIRE(it.launch(worth ? it.with_door : it.persistent, name, blocks) == CUDA_SUCCESS);
            REQUIRE(it.stream->pass_through() == CUDA_SUCCESS);
            for (uint32_t unit = 0; unit < blocks; ++unit) all.emplace_back(name, unit);
            it.gpu.run(random() % 40);
            if (random() % 3 == 0) it.stream->poll();
            if (random() % 5 != 0) continue;
            const schedule::Kernel before = it.first();
            while (!it.stream->stop()) it.gpu.run(1);
            const schedule::Kernel after = it.come_to_end();
            ends += before.launch != 0 && after.launch == 0;
            it.stream->pass_through();
        }
        it.come_to_end();
        REQUIRE(it.gpu.ran == all);
    }
    CHECK(ends > 10);  // stops with nothing in flight that was worth one
}

TEST_CASE("stream with doors: quick launches among others, some of which fail", "[dispatch]") {
    std::mt19937_64 random(4);
    int stops = 0;
    for (int round = 0; round < 100; ++round) {
        DoorStream it(kAhead);
        it.with_door.queued.of(40, 1).set_block_ps(1'000'000);
        it.with_door.queued.of(10, 1).set_block_ps(900'000);  // 9 us in all
        std::vector<DoorGpu::Unit> all;
        REQUIRE(it.stream->pass_through() == CUDA_SUCCESS);
        for (uint32_t name = 0; name < 60; ++name) {
            const uint32_t blocks = random() % 4 ? 10 : 40;
            if (random() % 6 == 0) it.launch(it.failing, name, 10);
            while (it.launch(it.with_door, name, blocks) != CUDA_SUCCESS) {  // of one that had to wait
            }
            for (uint32_t unit = 0; unit < blocks; ++unit) all.emplace_back(name, unit);
            if (random() % 2) it.gpu.run(random() % 40);
            if (random() % 3 == 0) it.stream->poll();
            if (random() % 5 != 0) continue;
            while (!it.stream->stop()) it.gpu.run(1);
            stops += it.come_to_end().launch != 0;
            it.stream->pass_through();
        }
        it.come_to_end();
        it.come_to_end();
        REQUIRE(it.gpu.ran == all);
    }
    CHECK(stops > 100);
}

TEST_CASE("stream with doors: a stop is of what follows the last other operation", "[dispatch]") {
    DoorStream it(kAhead);
    it.with_door.queued.of(100, 1).set_block_ps(3000);
    it.begin(2, 100);
    it.gpu.run(10);
    REQUIRE(it.stream->guard() == CUDA_SUCCESS);
    it.gpu.enqueue_other(1);
    REQUIRE(it.stream->stop());  // there is nothing that could be stopped
    CHECK(it.come_to_end().launch == 0);
    it.stream->pass_through();
    REQUIRE(it.launch(it.with_door, 2, 100) == CUDA_SUCCESS);
    it.stream->pass_through();
    REQUIRE(it.stream->stop());
    const schedule::Kernel kernel = it.come_to_end();
    CHECK((kernel.launch == 3 && kernel.blocks_done == 0));
}

TEST_CASE("stream with doors: what takes unknown time, or longer than was expected, is waited for",
          "[dispatch]") {
    for (const bool late : {false, true}) {
        DoorStream it(kAhead);
        it.with_door.queued.of(100, 1).set_block_ps(late ? 3000 : 0);
        it.begin(2, 100);
        if (late) it.device.time = it.device.now() + std::chrono::seconds(1);
        it.gpu.goes_on_when_asked = true;
        REQUIRE(it.stream->guard() == CUDA_SUCCESS);
        CHECK(it.gpu.ran == each_once(2, 100));
    }
}

TEST_CASE("stream with doors: what stands still is not waited for, and not stopped any more", "[dispatch]") {
    DoorStream it(kAhead);
    it.begin(2, 100);
    it.gpu.run(10);
    REQUIRE(it.stream->guard() == CUDA_SUCCESS);
    CHECK(it.gpu.ran.size() == 10);
    REQUIRE(it.stream->stop());  // there is nothing that could be stopped
    CHECK(it.come_to_end().launch == 0);
    CHECK(it.gpu.ran == each_once(2, 100));
}

TEST_CASE("stream with doors: a stopped stream's launches go to the driver behind a wait, in any form",
          "[dispatch]") {
    DoorStream it(kAhead);
    REQUIRE(it.stream->stop());
    REQUIRE(it.stream->enqueue_wait([] { return CUDA_SUCCESS; }) == CUDA_SUCCESS);
    REQUIRE(it.launch(it.with_door, 0, 100) == CUDA_SUCCESS);
    REQUIRE(it.launch(it.persistent, 1, 100) == CUDA_SUCCESS);
    REQUIRE(it.launch(it.with_door, 2, 100) == CUDA_SUCCESS);
    CHECK(it.gpu.launches == 0);
    REQUIRE(it.stream->guard() == CUDA_SUCCESS);
    CHECK(it.gpu.launches == 3);
    CHECK(it.gpu.ran.empty());
    CHECK_FALSE(it.stream->stop());  // their end is waited for
    it.come_to_end();
    CHECK(it.gpu.ran.size() >= 200);  // of the kernel with the door
    CHECK(it.stream->stop());
}

TEST_CASE("stream with doors: forms are not mixed in flight", "[dispatch]") {
    DoorStream it;
    it.begin(2, 10);
    REQUIRE(it.launch(it.persistent, 2, 10) == CUDA_SUCCESS);
    REQUIRE(it.launch(it.with_door, 3, 10) == CUDA_SUCCESS);
    CHECK(it.gpu.launches == 2);
    CHECK(it.come_to_end().managed);
    CHECK(it.gpu.launches == 3);
    it.come_to_end();
    CHECK(it.gpu.launches == 4);
    CHECK(it.first().has_door);
    CHECK(it.come_to_end().launch == 0);
}

TEST_CASE("stream with doors: what may wait for later blocks and runs at once is admitted as a whole",
          "[dispatch]") {
    constexpr uint32_t kAtOnce = DoorGpu::kSms * DoorGpu::kFits;
    DoorStream it;
    it.with_door.waits = true;
    it.begin(2, kAtOnce);
    it.gpu.run(1);
    REQUIRE(it.stream->stop());
    const schedule::Kernel kernel = it.come_to_end();
    CHECK((kernel.launch == 2 && kernel.blocks_done == 0));
    CHECK(it.gpu.ran == each_once(1, kAtOnce));
    it.stream->pass_through();
    it.come_to_end();
    CHECK(it.gpu.ran == each_once(2, kAtOnce));
}

TEST_CASE("stream with doors: a launch that is not made of whole units is refused", "[dispatch]") {
    DoorStream it;
    CHECK(it.launch(it.with_door, 2, 10, 4) == CUDA_ERROR_NOT_SUPPORTED);  // the driver says what is wrong
    CHECK(it.launch(it.with_door, 2, 10, 0) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(it.launch(it.with_door, 2, smt::kMostDoorUnits + 1) == CUDA_ERROR_NOT_SUPPORTED);
    it.stream->pass_through();
    CHECK(it.gpu.launches == 0);
}

TEST_CASE("stream with doors: launches that the driver refuses leave no gap between those in flight",
          "[dispatch]") {
    DoorStream it;
    it.begin(1, 100);
    for (uint32_t i = 0; i < 2 * kMostDoorRuns; ++i)
        REQUIRE(it.launch(it.failing, 7, 10) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    REQUIRE(it.launch(it.with_door, 1, 100) == CUDA_SUCCESS);
    REQUIRE(it.gpu.launches == 2);
    it.gpu.run(30);
    REQUIRE(it.stream->stop());
    const schedule::Kernel kernel = it.come_to_end();
    CHECK((kernel.launch == 1 && kernel.blocks_done == it.gpu.ran.size()));
    it.stream->pass_through();
    it.come_to_end();
    CHECK(it.gpu.ran == each_once(2, 100));
}

TEST_CASE("stream with doors: no stop is written before the stop word is cleared", "[dispatch]") {
    DoorStream it;
    it.begin(1, 100);
    CHECK_FALSE(it.stream->stop());  // the GPU is still at what was enqueued before
    it.gpu.run(0);
    REQUIRE(it.stream->stop());
    CHECK(it.come_to_end().state == Seen::kWaiting);
    CHECK(it.gpu.ran.empty());
}

}  // namespace smt::runtime::dispatch
