#include "runtime/dispatch/last_durations.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "runtime/dispatch/work.h"
#include "runtime/server/handlers/code/launch_key.h"

using namespace smt::runtime;
using namespace std::chrono_literals;
namespace protocol = smt::protocol;
using dispatch::LastDurations;

namespace {

const LastDurations::Launch kGrid{.blocks = 100, .block_threads = 256};

// Parameters as the driver has them: an int, a pointer, a struct of a pointer and a number, a double.
struct Arguments {
    int32_t steps = 10;
    int32_t between = 0;
    uint64_t buffer = 0x7000'0000'1000;
    struct {
        uint64_t buffer = 0x7000'0000'2000;
        uint64_t rows = 7;
    } matrix;
    double scale = 0.5;
};
const std::array<protocol::ParameterInfo, 4> kLayout{{{0, 4}, {8, 8}, {16, 16}, {32, 8}}};

uint64_t key_of(const Arguments& arguments, const protocol::Launch& launch) {
    char bytes[sizeof arguments];
    std::memcpy(bytes, &arguments, sizeof bytes);
    return server::handlers::launch_key(launch, kLayout, bytes, sizeof bytes,
                                        [](uint64_t word) { return word >> 32 == 0x7000; });
}

protocol::Launch launch_with(uint32_t blocks) {
    protocol::Launch launch{};
    launch.grid[0] = blocks;
    launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
    launch.block[0] = 256;
    return launch;
}

}  // namespace

TEST_CASE("last durations: by key, and the last one counts", "[dispatch]") {
    LastDurations known;
    CHECK_FALSE(known.predict(1, kGrid));
    known.learn(1, kGrid, 1000);
    known.learn(2, kGrid, 9000);
    CHECK(*known.predict(1, kGrid) == Approx(1000));
    CHECK(*known.predict(2, kGrid) == Approx(9000));
    known.learn(1, kGrid, 4000);
    CHECK(*known.predict(1, kGrid) == Approx(4000));
    known.learn(0, kGrid, 77);  // no key
    CHECK(known.last(0) == 0);
    known.forget();
    CHECK_FALSE(known.predict(1, kGrid));
}

TEST_CASE("last durations: a new key is predicted by FLEP's regression over others", "[dispatch]") {
    LastDurations known;
    known.learn(1, kGrid, 1000);
    known.learn(2, kGrid, 3000);
    CHECK(*known.predict(3, kGrid) == Approx(2000));                       // the same grid: the mean
    CHECK_FALSE(known.predict(3, {.blocks = 200, .block_threads = 256}));  // of another, nothing
    known.forget();
    for (uint64_t blocks = 100; blocks <= 1000; blocks += 100)
        known.learn(blocks, {.blocks = static_cast<double>(blocks), .block_threads = 256},
                    500 + 2 * static_cast<double>(blocks));
    CHECK(*known.predict(1, {.blocks = 550, .block_threads = 256}) == Approx(1600).epsilon(0.01));
    CHECK(*known.predict(1, {.blocks = 2000, .block_threads = 256}) == Approx(4500).epsilon(0.01));
}

TEST_CASE("last durations: keys are bounded, and those that come again stay", "[dispatch]") {
    LastDurations known;
    for (uint64_t key = 10; key < 10 + 8 * LastDurations::kMost; ++key) {
        known.learn(key, kGrid, 1000);
        if (key % 100 == 0) known.learn(1, kGrid, 5000);
    }
    CHECK(known.last(1) == Approx(5000));
    CHECK(known.last(10) == 0);
}

TEST_CASE("a launch's key: its grid and scalars, and no pointers", "[dispatch]") {
    const protocol::Launch launch = launch_with(100);
    const uint64_t key = key_of({}, launch);
    Arguments other;
    other.buffer += 64;
    other.matrix.buffer += 64;
    other.between = 5;  // between two arguments
    CHECK(key_of(other, launch) == key);
    const auto differs = [&](const auto& change) {
        Arguments changed;
        change(changed);
        return key_of(changed, launch) != key;
    };
    CHECK(differs([](Arguments& each) { each.steps = 11; }));
    CHECK(differs([](Arguments& each) { each.matrix.rows = 8; }));
    CHECK(differs([](Arguments& each) { each.scale = 0.25; }));
    CHECK(differs([](Arguments& each) { each.buffer = 3; }));  // no address of the tenant's
    CHECK(key_of({}, launch_with(101)) != key);
    protocol::Launch wider = launch;
    wider.block[0] = 128;
    CHECK(key_of({}, wider) != key);
    // An argument that reaches beyond the parameters is left out.
    char few[8] = {};
    CHECK(server::handlers::launch_key(launch, kLayout, few, sizeof few, [](uint64_t) { return false; }));
}

TEST_CASE("a launch's time alone is the last one's with its key, then others', then the kernel's",
          "[dispatch]") {
    dispatch::ManagedFunction function;
    function.block_ns = 50;
    dispatch::Work work;
    work.function = &function;
    work.total = 100;
    work.block[0] = 256;
    work.key = 5;
    CHECK(*work.time_alone(10) == 500ns);  // ten rounds
    function.alone.last().learn(6, work.alike().launch, 3000);
    CHECK(*work.time_alone(10) == 3000ns);
    function.alone.last().learn(5, work.alike().launch, 700);
    CHECK(*work.time_alone(10) == 700ns);
    function.forget();
    CHECK_FALSE(work.time_alone(10));
}

TEST_CASE("GPU time: launches of one shape teach apart where their keys differ", "[dispatch]") {
    const schedule::TimePoint start = schedule::TimePoint{} + 1h;
    dispatch::Company company;
    dispatch::Received one;
    dispatch::GpuTime time(company, one);
    dispatch::LaunchTimes kernel;
    const auto run = [&](std::initializer_list<uint64_t> keys, schedule::Duration from,
                         schedule::Duration to) {
        time.settle(true, start + from);
        for (const uint64_t key : keys)
            time.over(kernel.of(100, 256), 100, true, {&kernel.last(), key, kGrid});
        time.settle(false, start + to);
    };
    run({1}, 0us, 10us);
    run({2}, 20us, 110us);
    CHECK(kernel.last().last(1) == Approx(10'000));
    CHECK(kernel.last().last(2) == Approx(90'000));
    run({1, 2}, 200us, 300us);  // seen to be over at once: each with its own part
    CHECK(kernel.last().last(1) == Approx(10'000));
    CHECK(kernel.last().last(2) == Approx(90'000));
    // What is left of a launch that was stopped tells of all of it.
    time.settle(true, start + 400us);
    time.over(kernel.of(100, 256), 25, true, {&kernel.last(), 2, kGrid});
    time.settle(false, start + 420us);
    CHECK(kernel.last().last(2) == Approx(80'000));
}
