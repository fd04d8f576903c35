// A stream that a policy confines, on a GPU of the test's own (door_gpu.h): whatever it does, and however it
// is stopped, all is in the program's order.
#include <catch2/catch.hpp>
#include <random>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"
#include "tests/dispatch/door_device.h"
#include "tests/unit/temporary_folder.h"

namespace smt::runtime::dispatch {

namespace {

using tests::DoorGpu;

struct AwayStream {
    DoorGpu gpu;
    tests::TemporaryFolder folder;
    journal::Writer journal{folder.file("journal")};
    tests::DoorDevice device{DoorGpu::driver()};
    Dispatcher dispatcher{
        device, journal, std::make_unique<tests::Undecided>(), {.ahead = std::chrono::hours(1)}};
    std::shared_ptr<Tenant> tenant = std::make_shared<Tenant>();
    ManagedFunction confinable, refused, waits;
    std::unique_ptr<ManagedStream> stream;
    std::vector<DoorGpu::Unit> expected;
    uint32_t names = 0;
    bool known = true;  // what launches cost

    AwayStream() {
        for (ManagedFunction* each : {&confinable, &refused, &waits}) {
            each->function = reinterpret_cast<CUfunction>(each);
            each->form = Form::kDoor;
            each->launch_offset = DoorGpu::kOwnBytes;
        }
        refused.function = DoorGpu::kFailsAway;
        waits.waits = true;
        tenant->preemptible = true;
        stream = std::make_unique<ManagedStream>(dispatcher, tenant, DoorGpu::kProgram);
        REQUIRE(stream->open() == CUDA_SUCCESS);
        confine(2);
        REQUIRE(launch(confinable, 1) == CUDA_SUCCESS);
        stream->pass_through();
    }
    ~AwayStream() {
        stream->abandon();
        gpu.run();
        stream->poll();
    }
    void confine(int multiprocessors) {
        stream->confine({stream->id(), multiprocessors, {}, "", true, std::chrono::minutes(1)});
    }
    CUresult launch(ManagedFunction& function, uint32_t blocks, uint32_t unit = 1) {
        Work work;
        work.function = &function;
        work.grid[0] = blocks * unit;
        work.total = work.grid[0];
        work.unit = unit;
        LaunchTime& cost = function.queued.of(work.total, 1);
        if (known && cost.block_ps() == 0) cost.set_block_ps(3000);
        work.parameters.resize(DoorGpu::kOwnBytes);
        std::memcpy(work.parameters.data(), &names, sizeof names);
        for (uint32_t block = 0; block < blocks; ++block) expected.emplace_back(names, block);
        ++names;
        return stream->launch(std::move(work));
    }
    void enqueue_other(CUstream on = DoorGpu::kProgram) {
        gpu.enqueue_other(names, on);
        expected.emplace_back(names++, DoorGpu::kOther);
    }
    // Where that is, an unmanaged launch would be.
    CUstream enter() {
        UnmanagedPass pass;
        const auto function = reinterpret_cast<CUfunction>(5);
        REQUIRE(stream->enter({.key = 1, .name = 1, .function = function, .blocks = 1, .threads = 1},
                              &pass) == CUDA_SUCCESS);
        const CUstream where = pass.where(DoorGpu::kProgram);
        enqueue_other(where);
        REQUIRE(pass.launched() == CUDA_SUCCESS);
        return where;
    }
    void come_to_end() {
        stream->mark_what_is_there();
        gpu.run();
        stream->poll();
    }
    bool is_away() {
        const size_t before = gpu.launches_away;
        REQUIRE(launch(confinable, 1) == CUDA_SUCCESS);
        return gpu.launches_away > before;
    }
    // Driver calls that order one stream behind the other, for `what` and the launch behind it.
    template <class What>
    size_t ways(const What& what) {
        const size_t before = gpu.ways;
        what();
        REQUIRE(launch(confinable, 1) == CUDA_SUCCESS);
        return gpu.ways - before;
    }
};

}  // namespace

TEST_CASE("away: launches that follow each other stay there, and all else brings the stream home",
          "[dispatch]") {
    AwayStream it;
    ManagedStream& stream = *it.stream;
    CHECK(it.is_away());
    CHECK(it.ways([] {}) == 0);
    CHECK(it.ways([&] { stream.mark_what_is_there(); }) == 0);
    CHECK(it.ways([&] { CHECK(it.enter() == DoorGpu::kAway); }) == 0);
    CHECK(it.ways([&] { CHECK(stream.guard() == CUDA_SUCCESS); }) == 2);
    CHECK(it.ways([&] { CHECK(stream.come_home() == CUDA_SUCCESS); }) == 2);
    CHECK(it.ways([&] { stream.held_back(); }) == 2);
    CHECK(it.ways([&] { stream.issued(); }) == 2);
    CHECK(it.ways([&] { CHECK(it.launch(it.refused, 1) == CUDA_SUCCESS); }) == 2);
    CHECK(it.ways([&] { CHECK(it.launch(it.waits, 100) == CUDA_SUCCESS); }) == 2);
    CHECK(it.ways([&] { CHECK(it.launch(it.confinable, 1, 16) == CUDA_SUCCESS); }) == 2);
    CHECK(it.ways([&] {
        UnmanagedPass dropped;
        CHECK(stream.enter({.key = 1, .function = reinterpret_cast<CUfunction>(5)}, &dropped) ==
              CUDA_SUCCESS);
    }) == 2);
    CHECK(it.ways([&] {
        UnmanagedPass graph;
        CHECK(stream.enter({.key = 2}, &graph) == CUDA_SUCCESS);
        it.enqueue_other();
        CHECK(graph.launched() == CUDA_SUCCESS);
    }) == 2);
    it.come_to_end();
    CHECK(it.gpu.ran == it.expected);
}

TEST_CASE("away: what the driver refuses there is launched at home, in order", "[dispatch]") {
    AwayStream it;
    for (int i = 0; i < 3; ++i) {
        REQUIRE(it.launch(it.refused, 3) == CUDA_SUCCESS);
        REQUIRE(it.is_away());
    }
    it.come_to_end();
    CHECK(it.gpu.ran == it.expected);
}

TEST_CASE("away: whatever a stream does there and at home is in the program's order, also when it is stopped",
          "[dispatch]") {
    std::mt19937_64 random(4);
    for (int round = 0; round < 60; ++round) {
        AwayStream it;
        it.gpu.away_first = round % 2 == 0;
        for (int step = 0; step < 60; ++step) {
            switch (random() % 10) {
                case 0:
                    it.confine(static_cast<int>(random() % 4));
                    break;
                case 1:
                    REQUIRE(it.stream->guard() == CUDA_SUCCESS);
                    it.enqueue_other();
                    if (random() % 2) it.stream->left_home();
                    break;
                case 2:
                    REQUIRE(it.launch(it.refused, 20) == CUDA_SUCCESS);
                    break;
                case 3:
                    it.gpu.run(random() % 40);
                    while (!it.stream->stop()) it.gpu.run(1 + random() % 8);
                    it.come_to_end();
                    it.stream->pass_through();
                    break;
                case 4:
                    it.come_to_end();
                    REQUIRE(it.launch(it.confinable, 1) == CUDA_SUCCESS);
                    it.stream->pass_through();
                    it.enter();
                    break;
                case 5:
                    if (it.stream->held_back()) break;
                    it.gpu.finish_program();
                    REQUIRE(it.gpu.ran == it.expected);
                    break;
                default:
                    REQUIRE(it.launch(it.confinable, 20) == CUDA_SUCCESS);
                    it.stream->pass_through();
            }
            it.stream->pass_through();
        }
        it.come_to_end();
        it.come_to_end();
        REQUIRE(it.gpu.ran == it.expected);
        REQUIRE(it.gpu.launches_away > 0);
    }
}

// The program launches nothing meanwhile: it waits for what is stopped.
TEST_CASE("away: what is stopped goes on there, on a set that has been made for another launch",
          "[dispatch]") {
    AwayStream it;
    it.confine(4);
    REQUIRE(it.is_away());
    it.confine(0);
    REQUIRE_FALSE(it.is_away());
    it.known = false;  // short steps
    REQUIRE(it.launch(it.confinable, 100) == CUDA_SUCCESS);
    it.stream->pass_through();
    it.gpu.run(8);
    REQUIRE(it.stream->stop());
    it.come_to_end();
    REQUIRE(it.gpu.ran.size() < it.expected.size());
    it.confine(2);
    const size_t away = it.gpu.launches_away;
    it.stream->pass_through();
    CHECK(it.gpu.launches_away > away);
    it.come_to_end();
    CHECK(it.gpu.ran == it.expected);
}

TEST_CASE("away: where stops may take long, nothing waits for what is in flight", "[dispatch]") {
    AwayStream it;
    it.known = false;  // it would be waited for
    it.stream->confine({it.stream->id(), 0, {}, "", true, schedule::Confinement::kLongStops});
    REQUIRE(it.launch(it.confinable, 5) == CUDA_SUCCESS);
    REQUIRE(it.stream->guard() == CUDA_SUCCESS);
    CHECK(it.gpu.ran.empty());
    it.enqueue_other();
    for (int i = 0; i < 100; ++i) CHECK(it.enter() == DoorGpu::kProgram);  // more than a window has room for
    CHECK(it.gpu.ran.empty());
    it.come_to_end();
    REQUIRE(it.launch(it.confinable, 5) == CUDA_SUCCESS);  // of an idle stream
    CHECK(it.gpu.launches == 3);
    it.come_to_end();
    CHECK(it.gpu.ran == it.expected);
}

}  // namespace smt::runtime::dispatch
