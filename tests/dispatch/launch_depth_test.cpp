#include "runtime/dispatch/launch_depth.h"

#include <catch2/catch.hpp>
#include <map>

using namespace smt::runtime;
using namespace std::chrono_literals;
using dispatch::LaunchDepth;

namespace {

constexpr schedule::Duration kMost = 10ms;
constexpr schedule::Duration kRest = 50us;
const schedule::TimePoint kBegin = schedule::TimePoint{} + 1h;

// A stream on a GPU that does one launch after the other, each in `each`. Its driver has events alone.
struct Gpu {
    static inline Gpu* it = nullptr;
    smt::DriverApi driver{};
    schedule::TimePoint now = kBegin, free_at = kBegin;
    std::map<CUevent, schedule::TimePoint> events;
    uint64_t made = 0;
    bool stands_still = false;
    schedule::Duration each = 10ms;

    Gpu() {
        it = this;
        driver.cuEventCreate = [](CUevent* event, unsigned) {
            *event = reinterpret_cast<CUevent>(++it->made);
            return CUDA_SUCCESS;
        };
        driver.cuEventRecord = [](CUevent event, CUstream) {
            it->events[event] = it->free_at;
            return CUDA_SUCCESS;
        };
        driver.cuEventQuery = [](CUevent event) {
            return it->stands_still || it->events[event] > it->now ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
        };
        driver.cuEventDestroy_v2 = [](CUevent event) {
            it->events.erase(event);
            return CUDA_SUCCESS;
        };
    }
    void run() { free_at = std::max(free_at, now) + each; }
    schedule::Duration ahead() const { return free_at - now; }
};

// Launches one, and says how long it waited.
schedule::Duration launch(Gpu& gpu, LaunchDepth& depth, bool waits = false) {
    const schedule::TimePoint begin = gpu.now;
    if (!depth.goes(nullptr)) {
        while (!depth.may_go(gpu.now, waits)) gpu.now += kRest;
    }
    gpu.run();
    return gpu.now - begin;
}

}  // namespace

TEST_CASE("depth: of long launches two are ahead, once it is known how long they are", "[dispatch]") {
    Gpu gpu;
    {
        LaunchDepth depth(gpu.driver, kMost);
        for (uint64_t i = 0; i < LaunchDepth::kUnknown; ++i) CHECK(launch(gpu, depth) == 0ms);
        for (int i = 0; i < 200; ++i) launch(gpu, depth);
        for (int i = 0; i < 50; ++i) {
            launch(gpu, depth);
            CHECK(gpu.ahead() > 1 * gpu.each);  // the GPU has work
            CHECK(gpu.ahead() <= 2 * gpu.each);
        }
        CHECK(gpu.events.size() <= 2 * LaunchDepth::kGroups);
    }
    CHECK(gpu.events.empty());
}

TEST_CASE("depth: of short launches so many are ahead as the limit allows", "[dispatch]") {
    Gpu gpu;
    gpu.each = 100us;
    LaunchDepth depth(gpu.driver, kMost);
    for (int i = 0; i < 1000; ++i) launch(gpu, depth);
    for (int i = 0; i < 1000; ++i) {
        launch(gpu, depth);
        CHECK(gpu.ahead() > 5ms);
        CHECK(gpu.ahead() <= 12ms);
    }
    gpu.each = 3us;  // of others of the stream
    for (int i = 0; i < 20'000; ++i) {
        launch(gpu, depth);
        CHECK(gpu.ahead() > 0us);
    }
    CHECK(gpu.ahead() >= static_cast<int>(LaunchDepth::kAtMost - 2 * LaunchDepth::kAtMost / 8) * gpu.each);
}

TEST_CASE("depth: a program that waits for its launches is not slowed down", "[dispatch]") {
    Gpu gpu;
    LaunchDepth depth(gpu.driver, kMost);
    for (int i = 0; i < 300; ++i) {
        CHECK(launch(gpu, depth) == 0ms);
        gpu.now = gpu.free_at + 1ms;
    }
}

TEST_CASE("depth: launches behind a wait, and those of a stream that stands still, go", "[dispatch]") {
    Gpu gpu;
    LaunchDepth depth(gpu.driver, kMost);
    for (int i = 0; i < 200; ++i) launch(gpu, depth);
    gpu.stands_still = true;
    for (int i = 0; i < 100; ++i) CHECK(launch(gpu, depth, true) == 0ms);
    CHECK(launch(gpu, depth) >= LaunchDepth::kStall);
    for (int i = 0; i < 100; ++i) CHECK(launch(gpu, depth) == 0ms);
    gpu.stands_still = false;
    gpu.now = gpu.free_at - 100 * gpu.each;  // what was there when it stood still is over
    for (int i = 0; i < 200; ++i) launch(gpu, depth);
    CHECK(gpu.ahead() <= 2 * gpu.each);
}

TEST_CASE("depth: without a limit nothing is asked of the driver", "[dispatch]") {
    Gpu gpu;
    LaunchDepth depth(gpu.driver, 0ms);
    for (int i = 0; i < 2000; ++i) CHECK(launch(gpu, depth) == 0ms);
    CHECK(gpu.made == 0);
}
