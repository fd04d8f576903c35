// Launches that a call waits for ahead of the driver, and those that stand back for it.
#include "runtime/device/cuda/launches_ahead.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <thread>

#include "tests/dispatch/sessions.h"

namespace smt::runtime::device {

namespace {

using namespace std::chrono_literals;
using tests::Acting;
using tests::Session;
using tests::stands_back;
using tests::stream;
using Front = LaunchesAhead::Front;
constexpr LaunchOf kFree{.session = 1}, kLimited{.session = 2, .limit = 1s};

// The driver of a class that notes launches: its events, and which streams are busy.
std::map<CUevent, CUstream> recorded;
std::map<CUstream, bool> busy;
DriverApi driver_of_events() {
    recorded.clear(), busy.clear();
    DriverApi real{};
    real.cuEventCreate = [](CUevent* event, unsigned) {
        static uintptr_t events = 0;
        *event = reinterpret_cast<CUevent>(++events);
        return CUDA_SUCCESS;
    };
    real.cuEventRecord = [](CUevent event, CUstream where) { return recorded[event] = where, CUDA_SUCCESS; };
    real.cuEventQuery = [](CUevent event) {
        return busy[recorded[event]] ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    };
    return real;
}

}  // namespace

TEST_CASE("launches without a limit are waited for if they were there, and not if they come meanwhile") {
    const DriverApi real = driver_of_events();
    LaunchesAhead launches(real);
    LaunchesAhead::Call first, second, third;
    const auto front = [&](LaunchesAhead::Call& call) { return launches.front(&call, 1h); };
    CHECK(front(first) == Front::kNone);
    busy[stream(1)] = busy[stream(2)] = true;
    launches.note(stream(1), kFree);
    launches.note(stream(1), kFree);
    CHECK(front(first) == Front::kEarlier);
    launches.note(stream(2), kFree);
    CHECK(front(first) == Front::kEarlier);
    CHECK(front(second) == Front::kEarlier);
    busy[stream(1)] = false;
    CHECK(front(first) == Front::kNone);
    CHECK(front(second) == Front::kEarlier);  // the second stream's was there when this one came
    busy[stream(2)] = false;
    CHECK(front(second) == Front::kNone);
    busy[stream(1)] = true;
    launches.note(stream(1), kFree);
    launches.forget();
    CHECK(front(third) == Front::kNone);
    CHECK(recorded.size() == 2);
}

TEST_CASE("launches with a limit are waited for whenever they came, and none is forgotten") {
    const DriverApi real = driver_of_events();
    LaunchesAhead launches(real);
    LaunchesAhead::Call call;
    busy[stream(1)] = busy[stream(2)] = busy[stream(3)] = true;
    launches.note(stream(1), kFree);
    REQUIRE(launches.front(&call, 1h) == Front::kEarlier);
    launches.note(stream(2), kLimited);
    launches.note(stream(3), kFree);
    busy[stream(1)] = false;
    CHECK(launches.front(&call, 1h) == Front::kLater);
    busy[stream(2)] = false;
    launches.note(stream(1), kLimited);  // on a stream that had another one's
    busy[stream(1)] = true;
    CHECK(launches.front(&call, 1h) == Front::kLater);
    busy[stream(1)] = false;
    CHECK(launches.front(&call, 1h) == Front::kNone);
    CHECK(call.turn == 0);                                  // its next moment is another one
    REQUIRE(launches.front(&call, 1h) == Front::kEarlier);  // the third stream's is still under way
}

TEST_CASE("a call does not wait for ever for launches that never cease") {
    const DriverApi real = driver_of_events();
    LaunchesAhead launches(real);
    LaunchesAhead::Call call;
    busy[stream(1)] = true;
    launches.note(stream(1), kFree);
    REQUIRE(launches.front(&call, 0h) == Front::kEarlier);
    busy[stream(1)] = false;
    busy[stream(2)] = true;
    launches.note(stream(2), kLimited);
    call.behind = LaunchesAhead::Clock::now() - 1h;
    CHECK(launches.front(&call, 2h) == Front::kLater);
    CHECK(launches.front(&call, 1h) == Front::kNone);
}

TEST_CASE("a launch with a limit that came later is one of those, too, when another call has asked") {
    const DriverApi real = driver_of_events();
    LaunchesAhead launches(real);
    LaunchesAhead::Call call, other;
    busy[stream(1)] = busy[stream(2)] = true;
    launches.note(stream(1), kFree);
    REQUIRE(launches.front(&call, 1h) == Front::kEarlier);
    launches.note(stream(2), kLimited);
    REQUIRE(launches.front(&other, 1h) == Front::kEarlier);
    busy[stream(1)] = false;
    CHECK(launches.front(&call, 1h) == Front::kLater);
    CHECK(launches.front(&other, 1h) == Front::kEarlier);
    busy[stream(2)] = false;
    CHECK(launches.front(&call, 1h) == Front::kNone);
    CHECK(launches.front(&other, 1h) == Front::kNone);
}

TEST_CASE("a launch stands back as long as calls ask, and its session lives") {
    const DriverApi real = driver_of_events();
    LaunchesAhead ahead(real);
    Session limited(1, "limited");
    std::atomic<bool> left{false};
    CHECK(ahead.stand_back(1h));  // no call has asked
    std::thread launches([&] {
        const Acting acting(limited);
        while (ahead.stand_back(1h)) {
        }
        left = true;
    });
    const auto ask = [&] {
        ahead.keep_back();
        std::this_thread::yield();
    };
    while (!stands_back(limited)) ask();
    limited.leaves_ = true;
    while (!left) ask();
    launches.join();
    CHECK_FALSE(stands_back(limited));
}

}  // namespace smt::runtime::device
