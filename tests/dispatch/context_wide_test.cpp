// The gate in front of driver calls that wait for the whole context: not while a stream waits for a client's
// doing.
#include "runtime/device/cuda/context_wide.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/device/cuda/stream_waits.h"
#include "runtime/device/device.h"
#include "runtime/device/held_up.h"
#include "tests/dispatch/sessions.h"

namespace smt::runtime::device {

namespace {

using namespace std::chrono_literals;
using tests::Acting;
using tests::Session;
using tests::stands_back;
using tests::stream;

// A stream is idle or not; an event is over when the wait before it is.
std::atomic<CUresult> stream_state{CUDA_SUCCESS}, event_state{CUDA_SUCCESS};
std::atomic<bool> launches_last{false};
std::atomic<int> launches_made{0};
constexpr uintptr_t kLater = 99;  // a stream with a state of its own
std::atomic<CUresult> later_state{CUDA_SUCCESS};
std::mutex later_mutex;
std::set<CUevent> later_events;
std::atomic<int> looked{0}, functions_loaded{0};
unsigned memory_freed = 0, modules_unloaded = 0;
std::mutex written_mutex;
std::map<CUdeviceptr, uint32_t> written;

// Once in a process: the gate keeps the table that it was given.
DriverApi& guarded_driver() {
    static DriverApi driver = [] {
        DriverApi real{};
        real.cuStreamQuery = [](CUstream) { return stream_state.load(); };
        real.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* capture) {
            *capture = CU_STREAM_CAPTURE_STATUS_NONE;
            return CUDA_SUCCESS;
        };
        real.cuEventCreate = [](CUevent* event, unsigned) {
            static uintptr_t events = 0;
            *event = reinterpret_cast<CUevent>(++events);
            return CUDA_SUCCESS;
        };
        real.cuEventRecord = [](CUevent event, CUstream where) {
            std::lock_guard lock(later_mutex);
            where == stream(kLater) ? (void)later_events.insert(event) : (void)later_events.erase(event);
            return CUDA_SUCCESS;
        };
        real.cuEventQuery = [](CUevent event) {
            std::lock_guard lock(later_mutex);
            return ++looked, later_events.contains(event) ? later_state.load() : event_state.load();
        };
        real.cuMemsetD32Async = [](CUdeviceptr address, unsigned value, size_t, CUstream) {
            std::lock_guard lock(written_mutex);
            written[address] = value;
            return CUDA_SUCCESS;
        };
        real.cuStreamWaitValue32_v2 = [](CUstream, CUdeviceptr, cuuint32_t, unsigned) {
            return CUDA_SUCCESS;
        };
        real.cuStreamWaitValue64_v2 = [](CUstream, CUdeviceptr, cuuint64_t, unsigned) {
            return CUDA_SUCCESS;
        };
        real.cuMemFree_v2 = [](CUdeviceptr) { return ++memory_freed, CUDA_SUCCESS; };
        real.cuModuleUnload = [](CUmodule) { return ++modules_unloaded, CUDA_SUCCESS; };
        real.cuModuleGetFunction = [](CUfunction*, CUmodule, const char*) {
            return ++functions_loaded, CUDA_SUCCESS;
        };
        real.cuKernelGetFunction = [](CUfunction*, CUkernel) { return ++functions_loaded, CUDA_SUCCESS; };
        real.cuMemHostUnregister = [](void*) { return CUDA_SUCCESS; };
        real.cuGraphLaunch = [](CUgraphExec, CUstream) { return CUDA_SUCCESS; };
        real.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, CUstream, void**, void**) {
            if (launches_last) std::this_thread::sleep_for(200us);
            return ++launches_made, CUDA_SUCCESS;
        };
        guard_context_wide_calls(real, 20ms);
        return real;
    }();
    return driver;
}

}  // namespace

TEST_CASE("calls that wait for the whole context are put off while a stream waits for a word") {
    DriverApi& driver = guarded_driver();
    event_state = CUDA_ERROR_NOT_READY;
    REQUIRE(driver.cuStreamWaitValue32_v2(nullptr, 0, 1, 0) == CUDA_SUCCESS);
    CHECK(driver.cuMemFree_v2(1) == CUDA_SUCCESS);
    CHECK(driver.cuModuleUnload(nullptr) == CUDA_SUCCESS);
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_ERROR_NOT_READY);
    CHECK(memory_freed == 0);
    CHECK(modules_unloaded == 0);

    event_state = CUDA_SUCCESS;
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_SUCCESS);
    CHECK(memory_freed == 1);
    CHECK(modules_unloaded == 1);
}

TEST_CASE("calls that wait for the whole context are put off while a kernel may not end") {
    DriverApi& driver = guarded_driver();
    event_state = CUDA_SUCCESS;
    memory_freed = functions_loaded = 0;
    hold_context_wide_calls(true);
    CHECK(driver.cuMemFree_v2(1) == CUDA_SUCCESS);
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_ERROR_NOT_READY);
    CHECK(memory_freed == 0);
    std::thread loads([&] { CHECK(driver.cuKernelGetFunction(nullptr, nullptr) == CUDA_SUCCESS); });
    hold_context_wide_calls(false);
    loads.join();
    CHECK(functions_loaded == 1);
    CHECK(memory_freed == 1);
}

TEST_CASE("calls that wait for the whole context are put off behind launches, of which one may not end") {
    DriverApi& driver = guarded_driver();
    const auto launch = [&] {
        CHECK(driver.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream(1), nullptr, nullptr) ==
              CUDA_SUCCESS);
    };
    const auto launch_graph = [&] { CHECK(driver.cuGraphLaunch(nullptr, stream(1)) == CUDA_SUCCESS); };
    event_state = CUDA_ERROR_NOT_READY;
    launch();
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_SUCCESS);  // no tenant has a limit

    watch_launches(true);
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_SUCCESS);
    const bool of_a_graph = GENERATE(false, true);
    of_a_graph ? launch_graph() : launch();
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_ERROR_NOT_READY);
    memory_freed = 0;
    CHECK(driver.cuMemFree_v2(1) == CUDA_SUCCESS);
    make_deferred_calls();
    CHECK(memory_freed == 0);
    event_state = CUDA_SUCCESS;
    make_deferred_calls();
    CHECK(memory_freed == 1);
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_SUCCESS);
    watch_launches(false);
}

TEST_CASE("launches that are made all the time let a call by") {
    constexpr int kThreads = 24,
                  kMost = 3000;  // launches of each thread, of which some are always being made
    DriverApi& driver = guarded_driver();
    event_state = CUDA_SUCCESS;
    functions_loaded = launches_made = 0;
    watch_launches(true);
    launches_last = true;
    std::vector<std::thread> launching;
    for (uintptr_t i = 0; i < kThreads; ++i)
        launching.emplace_back([&, i] {
            for (int n = 0; n < kMost && functions_loaded == 0; ++n)
                driver.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream(i), nullptr, nullptr);
        });
    while (launches_made < kThreads) std::this_thread::yield();
    CHECK(driver.cuModuleGetFunction(nullptr, nullptr, "kernel") == CUDA_SUCCESS);
    CHECK(launches_made < kThreads * kMost / 2);
    for (std::thread& each : launching) each.join();
    launches_last = false;
    watch_launches(false);
}

TEST_CASE("a session that goes on in another process makes no call that is put off") {
    DriverApi& driver = guarded_driver();
    Session held(1, "held");
    functions_loaded = 0;
    hold_context_wide_calls(true);
    std::thread loads([&] {
        const Acting acting(held);
        CHECK(driver.cuKernelGetFunction(nullptr, nullptr) == CUDA_ERROR_DEINITIALIZED);
    });
    held.leaves_ = true;
    loads.join();
    hold_context_wide_calls(false);
    CHECK(functions_loaded == 0);
}

TEST_CASE("launches with a limit stand back while a call waits for later ones alone") {
    DriverApi& driver = guarded_driver();
    const auto launch_on = [&](uintptr_t number) {
        const LaunchesOf watched({.session = 2, .limit = 1s});
        CHECK(driver.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream(number), nullptr, nullptr) ==
              CUDA_SUCCESS);
    };
    // The call makes its way after its patience, which a slow machine may spend otherwise.
    const auto are_seen_to = [&] {
        watch_launches(true);
        Session limited(1, "limited"), loader(2, "loader");
        event_state = later_state = CUDA_ERROR_NOT_READY;
        functions_loaded = 0;
        launch_on(1);
        std::thread loads([&] {
            const Acting acting(loader);
            CHECK(driver.cuModuleGetFunction(nullptr, nullptr, "kernel") == CUDA_SUCCESS);
        });
        while (!longest_wait(loader.id())) std::this_thread::yield();  // it has asked
        launch_on(kLater);
        std::thread launches([&] {
            const Acting acting(limited);
            while (!limited.leaves_ && stand_back_for_calls(1h)) {
            }
        });
        event_state = CUDA_SUCCESS;
        bool seen = false;
        while (!seen && functions_loaded == 0) seen = stands_back(limited);
        limited.leaves_ = true;
        launches.join();
        later_state = CUDA_SUCCESS;
        loads.join();
        CHECK(functions_loaded == 1);
        watch_launches(false);  // the next try's call waits for none of these
        return seen;
    };
    int tries = 0;
    bool seen = false;
    while (!seen && ++tries <= 100) seen = are_seen_to();
    CHECK(seen);
    event_state = CUDA_SUCCESS;
}

TEST_CASE(
    "a function is loaded when no stream waits for a word: the driver would let nothing begin behind it") {
    DriverApi& driver = guarded_driver();
    event_state = CUDA_ERROR_NOT_READY;
    REQUIRE(driver.cuStreamWaitValue32_v2(nullptr, 0, 1, 0) == CUDA_SUCCESS);
    looked = functions_loaded = 0;
    std::thread of_a_module(
        [&] { CHECK(driver.cuModuleGetFunction(nullptr, nullptr, "kernel") == CUDA_SUCCESS); });
    std::thread of_a_library([&] { CHECK(driver.cuKernelGetFunction(nullptr, nullptr) == CUDA_SUCCESS); });
    while (looked < 6 && functions_loaded == 0) std::this_thread::yield();
    CHECK(functions_loaded == 0);
    event_state = CUDA_SUCCESS;
    of_a_module.join();
    of_a_library.join();
    CHECK(functions_loaded == 2);
}

TEST_CASE("in a quiet moment calls pass at once, and no stream begins to wait") {
    DriverApi& driver = guarded_driver();
    event_state = CUDA_ERROR_NOT_READY;
    REQUIRE(driver.cuStreamWaitValue32_v2(nullptr, 0, 1, 0) == CUDA_SUCCESS);
    CHECK_FALSE(begin_quiet());
    CHECK(driver.cuMemFree_v2(1) == CUDA_SUCCESS);  // put off
    memory_freed = functions_loaded = 0;
    event_state = CUDA_SUCCESS;
    REQUIRE(begin_quiet());
    CHECK(memory_freed == 1);
    std::atomic<bool> asked{false}, waits{false};
    std::thread other([&] {
        asked = true;
        driver.cuStreamWaitValue32_v2(stream(7), 0, 1, 0);
        waits = true;
    });
    while (!asked) std::this_thread::yield();
    CHECK(driver.cuModuleGetFunction(nullptr, nullptr, "one") == CUDA_SUCCESS);
    CHECK(driver.cuModuleGetFunction(nullptr, nullptr, "two") == CUDA_SUCCESS);
    CHECK(driver.cuMemFree_v2(2) == CUDA_SUCCESS);
    CHECK(functions_loaded == 2);
    CHECK(memory_freed == 2);
    for (int i = 0; i < 1000 && !waits; ++i) std::this_thread::yield();
    CHECK_FALSE(waits);
    end_quiet();
    other.join();
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_SUCCESS);  // the gate is free
}

TEST_CASE("a wait that is over holds nothing up, however busy its stream is") {
    DriverApi& driver = guarded_driver();
    event_state = CUDA_ERROR_NOT_READY;
    REQUIRE(driver.cuStreamWaitValue32_v2(nullptr, 0, 1, 0) == CUDA_SUCCESS);
    stream_state = CUDA_ERROR_NOT_READY;
    event_state = CUDA_SUCCESS;
    functions_loaded = 0;
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_SUCCESS);
    CHECK(driver.cuModuleGetFunction(nullptr, nullptr, "kernel") == CUDA_SUCCESS);
    CHECK(functions_loaded == 1);
    stream_state = CUDA_SUCCESS;
}

TEST_CASE(
    "what a session's streams wait for is written when its program is gone, and for others' nothing is") {
    DriverApi& driver = guarded_driver();
    Session bob(7, "bob"), alice(8, "alice");
    event_state = CUDA_ERROR_NOT_READY;
    {
        const Acting acting(bob);
        REQUIRE(driver.cuStreamWaitValue32_v2(stream(1), 0x100, 5, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
        REQUIRE(driver.cuStreamWaitValue32_v2(stream(1), 0x100, 6, CU_STREAM_WAIT_VALUE_EQ) ==
                CUDA_SUCCESS);  // behind the first
        REQUIRE(driver.cuStreamWaitValue64_v2(stream(2), 0x200, 0x300000004, CU_STREAM_WAIT_VALUE_GEQ) ==
                CUDA_SUCCESS);
        REQUIRE(driver.cuStreamWaitValue32_v2(stream(3), 0x300, 9, CU_STREAM_WAIT_VALUE_NOR) == CUDA_SUCCESS);
    }
    {
        const Acting acting(alice);
        REQUIRE(driver.cuStreamWaitValue32_v2(stream(4), 0x400, 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
    }
    stream_waits().release(bob, nullptr);
    CHECK(written == std::map<CUdeviceptr, uint32_t>{{0x100, 5}, {0x200, 4}, {0x204, 3}, {0x300, 0}});
    event_state = CUDA_SUCCESS;
    written.clear();
    stream_waits().release(bob, nullptr);
    CHECK(written.empty());
}

TEST_CASE("a session that holds others up for too long is ended, and named meanwhile") {
    DriverApi& driver = guarded_driver();
    Session bob(7, "bob"), train(8, "train");
    event_state = CUDA_ERROR_NOT_READY;
    {
        const Acting acting(bob);
        const NamedWaits named("a host function");
        REQUIRE(driver.cuStreamWaitValue32_v2(nullptr, 0, 1, 0) == CUDA_SUCCESS);
    }
    functions_loaded = 0;
    std::thread loads([&] {
        const Acting acting(train);
        CHECK(driver.cuModuleGetFunction(nullptr, nullptr, "kernel") == CUDA_SUCCESS);
    });
    const auto is_named = [&] {
        const auto wait = longest_wait(train.id());
        return wait && wait->by == "a host function of bob";
    };
    while (!is_named() || !bob.ended_) std::this_thread::yield();
    CHECK(bob.why_.find("a host function of bob") != std::string::npos);
    CHECK_FALSE(train.ended_);
    event_state = CUDA_SUCCESS;  // as its teardown brings about
    loads.join();
    CHECK(functions_loaded == 1);
    CHECK_FALSE(longest_wait(train.id()));
}

TEST_CASE("a session waits for its own streams as long as they wait, and no longer than it lives") {
    DriverApi& driver = guarded_driver();
    Session bob(7, "bob");
    event_state = CUDA_ERROR_NOT_READY;
    std::thread loads([&] {
        const Acting acting(bob);
        REQUIRE(driver.cuStreamWaitValue32_v2(nullptr, 0, 1, 0) == CUDA_SUCCESS);
        CHECK(driver.cuModuleGetFunction(nullptr, nullptr, "kernel") == CUDA_ERROR_DEINITIALIZED);
    });
    while (!longest_wait(bob.id())) std::this_thread::yield();
    bob.leaves_ = true;
    loads.join();
    CHECK_FALSE(bob.ended_);
    event_state = CUDA_SUCCESS;
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_SUCCESS);
}

TEST_CASE("launches of graphs captured into graphs wait for each word once") {
    StreamWaits waits(guarded_driver());
    waits.captured(
        {{0x1000, 1, CU_STREAM_WAIT_VALUE_GEQ, false}, {0x1004, 1, CU_STREAM_WAIT_VALUE_GEQ, false}});
    const StreamWaits::Words before = waits.captured();
    for (int launch = 0; launch < 12; ++launch)
        waits.captured(*waits.captured());  // a client decides how often
    CHECK(waits.captured() == before);      // one list
    CHECK(before->size() == 2);
    waits.captured({{0x1008, 2, CU_STREAM_WAIT_VALUE_GEQ, false}});
    CHECK(waits.captured()->size() == 3);
}

TEST_CASE("captured waits of one word for many values take little room, and each can be ended") {
    StreamWaits waits(guarded_driver());
    const auto ends = [](uint32_t value, const StreamWaits::Word& wait) {
        return static_cast<int32_t>(value - static_cast<uint32_t>(wait.value)) >= 0;
    };
    const auto can_be_ended = [&](const StreamWaits::Word& wait) {
        const StreamWaits::Words words = waits.captured();
        return std::any_of(words->begin(), words->end(), [&](const StreamWaits::Word& word) {
            return ends(static_cast<uint32_t>(word.value), wait);
        });
    };
    std::vector<StreamWaits::Word> all;
    for (uint64_t value = 0; value < 1ull << 32; value += 0x4001)
        all.push_back({0x1000, value, CU_STREAM_WAIT_VALUE_GEQ, false});
    waits.captured(all);
    CHECK(waits.captured()->size() == 4);
    CHECK(std::all_of(all.begin(), all.end(), can_be_ended));

    waits.captured(
        {{0x2000, 5, CU_STREAM_WAIT_VALUE_AND, true}, {0x2000, 8, CU_STREAM_WAIT_VALUE_AND, true}});
    REQUIRE(waits.captured()->size() == 5);
    CHECK(waits.captured()->back().value == 13);
    waits.captured({{0x2000, 5, CU_STREAM_WAIT_VALUE_EQ, true}, {0x2000, 8, CU_STREAM_WAIT_VALUE_EQ, true}});
    CHECK(waits.captured()->size() == 7);
}

TEST_CASE("a wait that no value ends is refused") {
    DriverApi& driver = guarded_driver();
    CHECK(driver.cuStreamWaitValue32_v2(nullptr, 0, 0, CU_STREAM_WAIT_VALUE_AND) == CUDA_ERROR_INVALID_VALUE);
    CHECK(driver.cuStreamWaitValue32_v2(nullptr, 0, ~0u, CU_STREAM_WAIT_VALUE_NOR) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(driver.cuMemHostUnregister(nullptr) == CUDA_SUCCESS);
}

}  // namespace smt::runtime::device
