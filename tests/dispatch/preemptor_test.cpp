// Whether launches pass, stop or wait: the table, and the launches that go with it.
#include "runtime/dispatch/preemptor.h"

#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "runtime/dispatch/launch_queue.h"

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;
using PState = Preemptor::State;
using Event = Preemptor::Event;

const schedule::TimePoint kStart = schedule::TimePoint{} + 1h;

Work launch_of(LaunchQueue& queue, ManagedFunction& function, uint64_t blocks, uint64_t covered) {
    Work work;
    work.function = &function;
    work.number = queue.next_number();
    work.launch = static_cast<uint32_t>(work.number);
    work.total = blocks;
    work.covered = static_cast<uint32_t>(covered);
    return work;
}

}  // namespace

TEST_CASE("preemptor: what each event does in each state", "[dispatch]") {
    const Event events[] = {Event::kStop,   Event::kRest, Event::kOver,
                            Event::kResume, Event::kRun,  Event::kHalt};
    struct Row {
        PState state;
        std::map<Event, PState> takes;
    };
    const Row rows[] = {
        {PState::kPassThrough, {{Event::kStop, PState::kStopping}, {Event::kRest, PState::kStopped}}},
        {PState::kStopping, {{Event::kOver, PState::kStopped}}},
        {PState::kStopped, {{Event::kResume, PState::kPassThrough}, {Event::kRun, PState::kRunning}}},
        {PState::kRunning, {{Event::kOver, PState::kStopped}, {Event::kHalt, PState::kHalted}}},
        {PState::kHalted, {{Event::kOver, PState::kStopped}}},
    };
    for (const Row& row : rows) {
        for (const Event event : events) {
            Preemptor preemptor(row.state);
            const auto next = row.takes.find(event);
            CHECK(preemptor.takes(event) == (next != row.takes.end()));
            preemptor.take(event, kStart);
            CHECK(preemptor.in(next == row.takes.end() ? row.state : next->second));
        }
    }
}

TEST_CASE("launch queue: what was stopped waits in front of what waited, in the program's order",
          "[dispatch]") {
    ManagedFunction function;
    function.function = reinterpret_cast<CUfunction>(1);
    LaunchQueue queue(0ms);
    queue.issued(launch_of(queue, function, 10, 10), kStart);
    queue.issued(launch_of(queue, function, 20, 20), kStart);
    queue.issued(launch_of(queue, function, 30, 5), kStart);  // its other blocks wait
    queue.waiting().push_back(launch_of(queue, function, 40, 0));
    REQUIRE(queue.in_flight().size() == 3);
    REQUIRE(queue.waiting().size() == 2);
    CHECK(queue.waiting().front().left() == 25);
    queue.in_flight()[0].done = 10;
    queue.in_flight()[1].done = 7;
    queue.put_back();
    CHECK(queue.in_flight().empty());
    std::vector<uint64_t> left;
    for (const Work& each : queue.waiting()) left.push_back(each.left());
    CHECK(left == std::vector<uint64_t>{13, 5, 25, 40});
    CHECK(queue.unfinished(2));
    CHECK_FALSE(queue.unfinished(1));
}

TEST_CASE("launch queue: what is in front of a marker is over, and what other operations follow is known",
          "[dispatch]") {
    ManagedFunction function;
    function.function = reinterpret_cast<CUfunction>(1);
    LaunchQueue queue(0ms);
    for (int i = 0; i < 3; ++i) queue.issued(launch_of(queue, function, 10, 10), kStart);
    CHECK(queue.unmarked() == 3);
    CHECK_FALSE(queue.tail(kStart + 99us));
    CHECK(queue.tail(kStart + 100us));
    CHECK(queue.last_let_pass() == nullptr);
    queue.let_pass();
    queue.marked(1);
    queue.issued(launch_of(queue, function, 10, 10), kStart);
    REQUIRE(queue.last_let_pass() != nullptr);
    CHECK(queue.last_let_pass()->number == 3);
    queue.forget(queue.over_at(0), kStart);
    CHECK(queue.in_flight().size() == 4);
    queue.forget(queue.over_at(1), kStart);
    CHECK(queue.in_flight().size() == 1);
    CHECK(queue.last_let_pass() == nullptr);
    queue.forget(queue.over_before(5), kStart);
    CHECK(queue.in_flight().empty());
    CHECK(queue.unmarked() == 0);
}

}  // namespace smt::runtime::dispatch
