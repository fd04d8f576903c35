// A stream whose kernels have doors, on a GPU of the test's own (door_gpu.h): what the server sees of its
// launches, and what becomes of them without their client.
#include <catch2/catch.hpp>
#include <map>
#include <optional>

#include "tests/dispatch/door_stream.h"

namespace smt::runtime::dispatch {

namespace {

using tests::DoorGpu, tests::DoorStream, tests::each_once;

}  // namespace

TEST_CASE("stream with doors: the journal has the GPU time of each kernel, and what of it cannot be stopped",
          "[dispatch]") {
    constexpr uint32_t kAtOnce = DoorGpu::kSms * DoorGpu::kFits;
    std::map<uint32_t, journal::Entry> times;  // by kernel
    for (const bool wanted : {true, false}) {
        DoorStream it({}, wanted);
        it.begin(1, 1);
        it.come_to_end();
        const auto takes = [&](uint32_t kernel, uint32_t blocks, schedule::Duration time) {
            Work work = DoorStream::work_of(it.with_door, 0, blocks);
            work.entry.name = kernel;
            work.entry.value = 5;
            const CUresult status = it.stream->launch(std::move(work));
            REQUIRE(status == CUDA_SUCCESS);
            it.stream->pass_through();
            it.device.time = it.device.now() + time;
            it.come_to_end();
            it.device.time = it.device.now() + std::chrono::seconds(1);
        };
        takes(11, kAtOnce + 1, std::chrono::microseconds(30));
        takes(12, kAtOnce, std::chrono::microseconds(20));
        takes(12, kAtOnce + 1, std::chrono::microseconds(5));
        it.stream->write_times();
        times.clear();
        journal::Reader(it.journal.path()).read(0, [&](const journal::Entry& entry) {
            if (entry.kind == journal::Kind::kGpuTime && entry.name) times[entry.name] = entry;
        });
        if (!wanted) break;
        REQUIRE(times.size() == 2);
        CHECK(times[11].end_ns == 30'000);
        CHECK(times[11].start_ns == 0);
        CHECK(times[11].value == 5);
        CHECK(times[12].end_ns == 25'000);
        CHECK(times[12].start_ns == 20'000);
        CHECK(times[12].grid[0] == 2);
    }
    CHECK(times.empty());
}

TEST_CASE("stream with doors: without its client what is in flight is stopped, and the rest dropped",
          "[dispatch]") {
    DoorStream it;
    it.begin(2 * kMostDoorRuns, 100);
    it.gpu.run(10);
    it.stream->abandon();
    const schedule::Kernel kernel = it.come_to_end();
    CHECK(it.gpu.ran.size() < 100);
    CHECK(it.gpu.launches == kMostDoorRuns);
    CHECK(kernel.launch == 0);
    CHECK(it.launch(it.with_door, 0, 10) == CUDA_ERROR_DEINITIALIZED);

    DoorStream other;
    REQUIRE(other.launch(other.with_door, 0, 100) == CUDA_SUCCESS);
    REQUIRE(other.stream->run({}, 0) == CUDA_SUCCESS);
    other.gpu.run(10);
    other.stream->abandon();
    CHECK(other.come_to_end().launch == 0);
    CHECK(other.gpu.ran.size() < 100);
}

TEST_CASE("stream with doors: a launch runs when nothing of its stream is in front of it", "[dispatch]") {
    DoorStream it;
    it.names = true;
    it.tenant->kernel_limit = std::chrono::seconds(1);
    it.dispatcher.enter(it.tenant);
    it.tenant->preemptible = true;
    it.gpu.enqueue_unit();
    it.begin(1, 200);
    CHECK_FALSE(it.stream->running());
    it.gpu.run(1);
    std::optional<Running> seen = it.stream->running();
    REQUIRE(seen);
    CHECK((seen->name == 1 && seen->stops && !seen->seen));
    it.gpu.run(100);
    it.stream->running();
    std::optional<Running> later = it.stream->running();
    REQUIRE(later);
    CHECK((later->launch == seen->launch && later->progress != seen->progress));
    while (!it.stream->stop()) it.gpu.run(1);
    CHECK(it.stream->running());  // its units in hand are not over
    it.come_to_end();
    CHECK_FALSE(it.stream->running());
    it.stream->pass_through();
    it.come_to_end();
    CHECK(it.gpu.ran == each_once(1, 200));
    CHECK_FALSE(it.stream->running());
    it.dispatcher.exit(it.tenant);
}

TEST_CASE("stream with doors: launches that wait are held, and those with the driver are not", "[dispatch]") {
    DoorStream it;
    it.names = true;
    REQUIRE(it.launch(it.with_door, 0, 200) == CUDA_SUCCESS);
    REQUIRE(it.launch(it.with_door, 1, 200) == CUDA_SUCCESS);
    CHECK(it.stream->held_launches() == std::vector<uint32_t>{1, 2});
    REQUIRE(it.stream->run({}, 20) == CUDA_SUCCESS);
    CHECK(it.stream->held_launches() == std::vector<uint32_t>{2});
    it.come_to_end();
    CHECK(it.stream->held_launches() == std::vector<uint32_t>{1, 2});
    it.stream->pass_through();
    CHECK(it.stream->held_launches().empty());
    it.come_to_end();
}

TEST_CASE("stream with doors: what is set aside is stopped first, and no block of it is lost", "[dispatch]") {
    DoorStream it;
    it.begin(2, 200);
    it.gpu.run(60);
    LaunchQueue::Works kept;
    CHECK_FALSE(it.stream->set_aside(&kept));
    CHECK(kept.empty());
    it.come_to_end();
    const size_t ran = it.gpu.ran.size();
    REQUIRE(it.stream->set_aside(&kept));
    REQUIRE(kept.size() == 2);
    CHECK(ran < 400);
    CHECK(kept[0].done + kept[1].done == ran);
    CHECK(it.launch(it.with_door, 2, 10) != CUDA_SUCCESS);
    LaunchQueue::Works again;
    CHECK(it.stream->set_aside(&again));
    CHECK(again.empty());
}

}  // namespace smt::runtime::dispatch
