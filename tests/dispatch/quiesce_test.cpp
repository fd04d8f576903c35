// When quiesce windows begin and end.
#include "runtime/dispatch/quiesce.h"

#include <catch2/catch.hpp>

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;
const schedule::TimePoint kBegin = schedule::TimePoint{} + 1h;

}  // namespace

TEST_CASE("quiesce: a call waits until a stop was issued on all streams", "[quiesce]") {
    QuiesceWindows windows;
    CHECK_FALSE(windows.open());
    const uint64_t call = windows.begin(7, kBegin);
    CHECK(call != 0);
    CHECK(windows.in_force(kBegin));
    CHECK(windows.look(kBegin + 1us, false).go_on.empty());
    CHECK(windows.waits(call));
    const auto told = windows.look(kBegin + 2us, true);
    CHECK(told.go_on == std::vector<uint32_t>{7});
    CHECK_FALSE(told.resumes);
    CHECK_FALSE(windows.waits(call));
    CHECK(windows.look(kBegin + 3us, true).go_on.empty());  // said once
}

TEST_CASE("quiesce: after the last call the window stays for a moment, or until its tenant launches",
          "[quiesce]") {
    for (const bool launches : {false, true}) {
        QuiesceWindows windows;
        const uint64_t first = windows.begin(7, kBegin), second = windows.begin(8, kBegin);
        windows.look(kBegin, true);
        CHECK_FALSE(windows.end(first, kBegin + 1ms));
        windows.launched(8);  // there is a call: no effect
        CHECK(windows.in_force(kBegin + 1ms));
        CHECK(windows.end(second, kBegin + 2ms));
        windows.launched(7);  // not the last that called
        CHECK(windows.in_force(kBegin + 2ms + 199us));
        CHECK_FALSE(windows.look(kBegin + 2ms + 199us, true).resumes);
        if (launches) windows.launched(8);
        CHECK(windows.in_force(kBegin + 2ms + 199us) != launches);
        CHECK(windows.look(kBegin + 2ms + 200us, true).resumes != launches);  // the launch is decided on
        CHECK_FALSE(windows.open());
    }
}

TEST_CASE("quiesce: a window ends after its time whatever calls do, and then there is none for as long",
          "[quiesce]") {
    QuiesceWindows windows;
    const uint64_t call = windows.begin(7, kBegin);
    windows.look(kBegin + 5ms, true);  // from here on
    CHECK(windows.in_force(kBegin + 24ms));
    CHECK(windows.until_next(kBegin + 5ms) == 0ms);    // enough is left of it
    CHECK(windows.until_next(kBegin + 16ms) == 29ms);  // little is
    CHECK_FALSE(windows.in_force(kBegin + 25ms));
    CHECK(windows.look(kBegin + 25ms, true).resumes);
    CHECK_FALSE(windows.look(kBegin + 26ms, true).resumes);  // once
    const uint64_t late = windows.begin(8, kBegin + 30ms);
    CHECK_FALSE(windows.in_force(kBegin + 30ms));
    CHECK(windows.look(kBegin + 30ms, false).go_on == std::vector<uint32_t>{8});  // it waits for nothing
    windows.end(call, kBegin + 31ms);
    windows.end(late, kBegin + 32ms);
    CHECK(windows.until_next(kBegin + 45ms) == 0ms);
    windows.begin(7, kBegin + 45ms);
    CHECK(windows.in_force(kBegin + 45ms));
}

TEST_CASE("quiesce: where no stop can be issued, calls go on after the window's time", "[quiesce]") {
    QuiesceWindows windows;
    windows.begin(7, kBegin);
    CHECK(windows.look(kBegin + 19ms, false).go_on.empty());
    const auto over = windows.look(kBegin + 20ms, false);
    CHECK(over.go_on == std::vector<uint32_t>{7});
    CHECK(over.resumes);
}

}  // namespace smt::runtime::dispatch
