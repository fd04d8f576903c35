// Orders: what a policy wants of a stream, and the next step there.
#include "runtime/dispatch/orders.h"

#include <catch2/catch.hpp>

using smt::runtime::dispatch::Orders;
using smt::runtime::dispatch::QuotaTable;
using smt::runtime::schedule::Assignment;
using smt::runtime::schedule::Kernel;
using smt::runtime::schedule::Quota;
using Step = Orders::Step;
using State = Kernel::State;
using Action = Assignment::Action;

namespace {

Kernel kernel(State state, int fits = 4) {
    Kernel made;
    made.state = state;
    made.ctas_per_sm = fits;
    return made;
}

Assignment run(const Quota& quota = {}, uint64_t slice = 0) { return {1, Action::kRun, "", quota, slice}; }
const Assignment kWait{1, Action::kWait, "", {}, 0};

Orders of_four() { return {4, {0, 1, 2, 3}}; }

}  // namespace

TEST_CASE("orders: nothing is done before there are any", "[orders]") {
    Orders orders = of_four();
    CHECK(orders.next(kernel(State::kRunning), true) == Step::kNone);
    CHECK(orders.next(kernel(State::kWaiting), false) == Step::kNone);
}

TEST_CASE("orders: run and wait", "[orders]") {
    Orders orders = of_four();
    orders.give(run());
    CHECK(orders.next(kernel(State::kRunning), true) == Step::kNone);
    CHECK(orders.next(kernel(State::kWaiting), false) == Step::kPassThrough);
    CHECK(orders.next(kernel(State::kStopping), false) == Step::kNone);
    orders.give(kWait);
    CHECK(orders.next(kernel(State::kRunning), true) == Step::kStop);
    CHECK(orders.next(kernel(State::kRunning), false) == Step::kHalt);
    CHECK(orders.next(kernel(State::kWaiting), false) == Step::kNone);
}

TEST_CASE("orders: a launch that takes fewer CTAs than fit is not stopped to be allowed more than that",
          "[orders]") {
    Orders orders = of_four();
    Kernel passes_through = kernel(State::kRunning);
    passes_through.usual_ctas = 2;
    orders.give(run({3}));
    CHECK(orders.next(passes_through, true) == Step::kNone);
    orders.give(run({1}));
    CHECK(orders.next(passes_through, true) == Step::kStop);
}

TEST_CASE(
    "orders: a stream that passes_through is stopped to be given quotas, then shrinks and grows where it is",
    "[orders]") {
    Orders orders = of_four();
    orders.give(run({3}));
    CHECK(orders.next(kernel(State::kRunning), true) == Step::kStop);
    REQUIRE(orders.next(kernel(State::kWaiting), false) == Step::kRun);
    CHECK(orders.quotas() == QuotaTable{3, 3, 3, 3});
    orders.done(Step::kRun);
    CHECK(orders.next(kernel(State::kRunning), false) == Step::kNone);
    orders.give(run({1, 0, 2, 3}));
    REQUIRE(orders.next(kernel(State::kRunning), false) == Step::kChange);
    CHECK(orders.quotas() == QuotaTable{1, 0, 2, 3});
    CHECK(orders.growth() == 0);
    orders.done(Step::kChange);
    orders.give(run());  // lifted
    REQUIRE(orders.next(kernel(State::kRunning), false) == Step::kChange);
    CHECK(orders.quotas() == QuotaTable{4, 4, 4, 4});
    CHECK(orders.growth() == 3 + 4 + 2 + 1);
    orders.done(Step::kChange);
    CHECK(orders.next(kernel(State::kRunning), false) == Step::kNone);
}

TEST_CASE("orders: quotas in which everything fits are none", "[orders]") {
    Orders orders = of_four();
    orders.give(run({4}));
    CHECK(orders.next(kernel(State::kRunning), true) == Step::kNone);
    CHECK(orders.next(kernel(State::kWaiting), false) == Step::kPassThrough);
    orders.give(run({9, 9, 4, 4}));
    CHECK(orders.next(kernel(State::kRunning), true) == Step::kNone);
    CHECK(orders.next(kernel(State::kRunning, 5), true) == Step::kStop);  // of this kernel five fit
}

TEST_CASE(
    "orders: a long launch behind one that had less than it takes begins with a table, and can be given less "
    "without a stop",
    "[orders]") {
    using namespace std::chrono_literals;
    const auto after = [](uint64_t launch, std::chrono::milliseconds remaining, int usual = 2) {
        Orders orders = of_four();
        Kernel first = kernel(State::kWaiting);
        first.launch = 1, first.usual_ctas = 2;
        orders.give(run({0, 2, 2, 2}));
        REQUIRE(orders.next(first, false) == Step::kRun);
        orders.done(Step::kRun);
        orders.give(run());
        Kernel next = kernel(State::kWaiting);
        next.launch = launch, next.usual_ctas = usual, next.remaining = remaining;
        const Step step = orders.next(next, false);
        if (step == Step::kRun) CHECK(orders.quotas() == QuotaTable{2, 2, 2, 2});
        return step;
    };
    CHECK(after(2, 10ms) == Step::kRun);
    CHECK(after(1, 10ms) == Step::kRun);          // the rest of it, stopped as a whole meanwhile
    CHECK(after(2, 1ms) == Step::kPassThrough);   // short: a table would cost more than it saves
    CHECK(after(3, 10ms) == Step::kPassThrough);  // nothing was wanted of the one before
    CHECK(after(2, 10ms, 0) ==
          Step::kPassThrough);  // how many CTAs are enough is found out by launches that flow
}

TEST_CASE("orders: what has begun with no more blocks than places is left to end", "[orders]") {
    Orders orders = of_four();
    orders.give(run({2, 2, 0, 0}));
    Kernel few = kernel(State::kRunning);
    few.blocks = 10, few.blocks_done = 6;
    CHECK(orders.next(few, true) == Step::kNone);
    few.blocks_done = 5;
    CHECK(orders.next(few, true) == Step::kStop);
    few.state = State::kWaiting, few.blocks_done = 6;
    CHECK(orders.next(few, false) == Step::kRun);  // it has not begun: it keeps to its places
}

TEST_CASE("orders: few blocks are spread, not packed where workers come first", "[orders]") {
    Orders orders = of_four();
    orders.give(run({3, 3, 3, 1}));
    Kernel few = kernel(State::kWaiting);
    few.blocks = 7;
    REQUIRE(orders.next(few, false) == Step::kRun);
    CHECK(orders.quotas() == QuotaTable{2, 2, 2, 1});
    orders.done(Step::kRun);
    few.state = State::kRunning, few.blocks_done = 7;
    CHECK(orders.next(few, false) == Step::kNone);  // it runs as it was told
    few.state = State::kWaiting, few.blocks_done = 3;
    REQUIRE(orders.next(few, false) == Step::kRun);
    CHECK(orders.quotas() == QuotaTable{1, 1, 1, 1});
    few.blocks_done = 0, few.blocks = 100;
    REQUIRE(orders.next(few, false) == Step::kRun);
    CHECK(orders.quotas() == QuotaTable{3, 3, 3, 1});
    orders.give(run({3, 3, 3, 1}, 5));
    REQUIRE(orders.next(few, false) == Step::kRun);
    CHECK(orders.quotas() == QuotaTable{2, 2, 2, 1});
}

TEST_CASE("orders: what grows with few blocks left grows evenly", "[orders]") {
    Orders orders = of_four();
    orders.give(run({1}));
    Kernel few = kernel(State::kWaiting);
    few.blocks = 8;
    REQUIRE(orders.next(few, false) == Step::kRun);
    orders.done(Step::kRun);
    few.state = State::kRunning, few.blocks_done = 4;  // taken, and at work
    orders.give(run({3}));
    REQUIRE(orders.next(few, false) == Step::kChange);
    CHECK(orders.quotas() == QuotaTable{2, 2, 2, 2});
    CHECK(orders.growth() == 4);
}

TEST_CASE("orders: a slice is a run of its own, also where everything fits", "[orders]") {
    Orders orders = of_four();
    orders.give(run({}, 100));
    CHECK(orders.next(kernel(State::kRunning), true) == Step::kStop);
    CHECK(orders.next(kernel(State::kWaiting), false) == Step::kRun);
    CHECK(orders.slice() == 100);
}

TEST_CASE("orders: quotas without a place for the stream would never end", "[orders]") {
    Orders confined(4, {2, 3});
    confined.give(run({2, 2, 0, 0}));
    CHECK(confined.next(kernel(State::kWaiting), false) == Step::kPassThrough);
    confined.give(run({4, 4, 1, 0}));
    CHECK(confined.next(kernel(State::kWaiting), false) == Step::kRun);
    confined.give(run({0, 0, 4, 4}));  // all that it may use
    CHECK(confined.next(kernel(State::kWaiting), false) == Step::kPassThrough);
}

TEST_CASE("orders: unmanaged work has no quotas", "[orders]") {
    Orders orders = of_four();
    orders.give(run({1}));
    Kernel unmanaged = kernel(State::kWaiting, 0);
    unmanaged.managed = false;
    CHECK(orders.next(unmanaged, false) == Step::kPassThrough);
    unmanaged.state = State::kRunning;
    CHECK(orders.next(unmanaged, true) == Step::kNone);
}

TEST_CASE("orders: what is news", "[orders]") {
    Orders orders = of_four();
    CHECK_FALSE(orders.give(run()));  // everything runs at first
    CHECK(orders.give(run({3})));
    CHECK_FALSE(orders.give(run({3})));
    CHECK(orders.give(kWait));
    CHECK(orders.give(run({3}, 5)));
}
