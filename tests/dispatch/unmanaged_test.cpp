#include "runtime/dispatch/unmanaged.h"

#include <catch2/catch.hpp>
#include <vector>

#include "runtime/dispatch/sm_sets.h"

using namespace smt::runtime::dispatch;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t kStream = 1, kOther = 2, kKernel = 7, kGraph = 8;
const smt::runtime::schedule::TimePoint kBegin = smt::runtime::schedule::TimePoint{} + 1h;

// So many of a stream's launches find room.
size_t fill(UnmanagedWindow& window, uint64_t stream, uint64_t key,
            smt::runtime::schedule::TimePoint now = kBegin) {
    size_t count = 0;
    while (count < 1000 && window.take_now(stream, key, now)) ++count;
    return count;
}

// Launches of the key are known to take so long.
void teach(UnmanagedWindow& window, uint64_t key, smt::runtime::schedule::Duration took) {
    for (int i = 0; i < 10; ++i) window.give(window.take_now(kStream, key, kBegin), took);
}

}  // namespace

TEST_CASE("unmanaged: of kernels of unknown length two are in flight", "[dispatch]") {
    UnmanagedWindow window;
    const auto first = window.take_now(kStream, kKernel, kBegin),
               second = window.take_now(kStream, kKernel, kBegin);
    CHECK(first != 0);
    CHECK(second != first);
    CHECK(window.take_now(kStream, kKernel, kBegin) == 0);
    window.give(first, 1ms);
    CHECK(window.take_now(kStream, kKernel, kBegin) != 0);
    CHECK(window.take_now(kStream, kKernel, kBegin) == 0);
}

TEST_CASE("unmanaged: long launches go two at a time, short ones as many as a moment holds", "[dispatch]") {
    UnmanagedWindow window;
    teach(window, kKernel, 5ms);
    CHECK(fill(window, kStream, kKernel) == 2);
    UnmanagedWindow other;
    teach(other, kKernel, 10us);
    CHECK(fill(other, kStream, kKernel) == 10);
    UnmanagedWindow tiny;
    teach(tiny, kKernel, 100ns);
    CHECK(fill(tiny, kStream, kKernel) == UnmanagedWindow::kAtMost);
}

TEST_CASE("unmanaged: a long launch behind short ones waits, a short one behind long ones too",
          "[dispatch]") {
    UnmanagedWindow window;
    teach(window, kKernel, 10us);
    teach(window, kGraph, 5ms);
    for (int i = 0; i < 3; ++i) CHECK(window.take_now(kStream, kKernel, kBegin) != 0);
    CHECK(window.take_now(kStream, kGraph, kBegin) == 0);
    CHECK(window.take_now(kStream, kKernel, kBegin) != 0);
    UnmanagedWindow other;
    teach(other, kKernel, 10us);
    teach(other, kGraph, 5ms);
    CHECK(fill(other, kStream, kGraph) == 2);
    CHECK(other.take_now(kStream, kKernel, kBegin) == 0);
}

TEST_CASE("unmanaged: a stream that has nothing in flight gets one launch", "[dispatch]") {
    UnmanagedWindow window;
    CHECK(fill(window, kStream, kKernel) == 2);
    CHECK(fill(window, kOther, kKernel) == 1);
    CHECK(fill(window, kStream, kKernel) == 0);
}

TEST_CASE("unmanaged: what does not end is not waited for for ever", "[dispatch]") {
    UnmanagedWindow window;
    CHECK(fill(window, kStream, kKernel) == 2);
    CHECK(fill(window, kStream, kKernel, kBegin + UnmanagedWindow::kStall) == 0);
    CHECK(fill(window, kStream, kKernel, kBegin + UnmanagedWindow::kStall + 1ms) == 2);
}

TEST_CASE("unmanaged: what was not launched teaches nothing", "[dispatch]") {
    UnmanagedWindow window;
    window.give(window.take_now(kStream, kKernel, kBegin), 0ns);
    window.give(999, 1us);  // none of it
    CHECK(fill(window, kStream, kKernel) == 2);
}

TEST_CASE("unmanaged: multiprocessors are told in rows", "[dispatch]") {
    CHECK(ranges({}).empty());
    CHECK(ranges({3}) == "3");
    CHECK(ranges({0, 1, 2, 3, 16, 18, 19}) == "0-3, 16, 18-19");
}
