// Waits while other processes want the cores: what the machine reports of that, and the driver's waits,
// which sleep then.
#include "runtime/device/cores.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "runtime/device/cuda/waits.h"

namespace smt::runtime::device {

TEST_CASE("cores are scarce when more threads want to run than there are cores", "[cores]") {
    CHECK_FALSE(cores_scarce("0.20 0.18 0.12 3/80 11206\n", 4));
    CHECK_FALSE(cores_scarce("9.00 9.00 9.00 4/80 11206\n", 4));  // what was before does not count
    CHECK(cores_scarce("0.20 0.18 0.12 5/80 11206\n", 4));
    CHECK(cores_scarce("0.20 0.18 0.12 17/1280 11206\n", 16));
    for (const char* nonsense : {"", "/", "5", "a b c /80", "0.20 0.18 0.12 -5"})
        CHECK_FALSE(cores_scarce(nonsense, 4));
}

namespace {

std::atomic<bool> scarce{false};
std::atomic<int> asked{0}, blocked{0};
std::atomic<CUresult> answer{CUDA_SUCCESS};

// Ready when it has been asked three times.
DriverApi& driver() {
    static DriverApi table = [] {
        DriverApi real{};
        real.cuStreamQuery = [](CUstream) { return ++asked < 3 ? CUDA_ERROR_NOT_READY : answer.load(); };
        real.cuEventQuery = [](CUevent) { return ++asked < 3 ? CUDA_ERROR_NOT_READY : answer.load(); };
        real.cuStreamSynchronize = [](CUstream) { return ++blocked, CUDA_SUCCESS; };
        real.cuEventSynchronize = [](CUevent) { return ++blocked, CUDA_SUCCESS; };
        guard_waits(real, [] { return scarce.load(); });
        return real;
    }();
    asked = blocked = 0;
    return table;
}

}  // namespace

TEST_CASE("the driver waits as it likes while there are cores to spare", "[cores]") {
    scarce = false;
    CHECK(driver().cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    CHECK(asked == 0);
    CHECK(blocked == 1);
}

TEST_CASE("where cores are scarce it is asked now and then, and says what went wrong", "[cores]") {
    scarce = true;
    answer = CUDA_SUCCESS;
    CHECK(driver().cuEventSynchronize(nullptr) == CUDA_SUCCESS);
    CHECK(asked == 3);
    CHECK(blocked == 1);  // what was printed comes out then
    blocked = 0;
    answer = CUDA_ERROR_ILLEGAL_ADDRESS;
    CHECK(driver().cuStreamSynchronize(nullptr) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(blocked == 0);
}

TEST_CASE("a wait goes on as the driver likes when cores are to spare again", "[cores]") {
    scarce = true;
    DriverApi& table = driver();
    asked = -1000;
    std::thread waits([&] { table.cuStreamSynchronize(nullptr); });
    while (asked == -1000) std::this_thread::yield();
    scarce = false;
    waits.join();
    CHECK(blocked == 1);
    CHECK(asked < 3);
}

// Of a kernel before 6.12, which says nothing of turns, only that nothing happens.
TEST_CASE("a thread that asks for short turns has them, and so have the threads that it starts", "[cores]") {
    std::thread asks([] {
        const uint64_t usual = turn_ns();
        const bool granted = ask_for_short_turns();
        uint64_t child = 0;
        std::thread([&] { child = turn_ns(); }).join();
        CHECK(turn_ns() == (granted && usual ? 100'000 : usual));
        CHECK(child == turn_ns());
    });
    asks.join();
    if (const uint64_t here = turn_ns()) CHECK(here > 100'000);
}

}  // namespace smt::runtime::device
