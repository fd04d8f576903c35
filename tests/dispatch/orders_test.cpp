// Orders: what a policy wants of a stream, and the next step there.
#include "runtime/dispatch/orders.h"

#include <catch2/catch.hpp>

using smt::runtime::dispatch::Orders;
using smt::runtime::dispatch::QuotaTable;
using smt::runtime::dispatch::Step;
using smt::runtime::schedule::Assignment;
using smt::runtime::schedule::Kernel;
using smt::runtime::schedule::Quota;
using Next = Step::What;
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
    CHECK(orders.next(kernel(State::kRunning), true) == Next::kNone);
    CHECK(orders.next(kernel(State::kWaiting), false) == Next::kNone);
}

TEST_CASE("orders: run and wait", "[orders]") {
    Orders orders = of_four();
    orders.give(run());
    CHECK(orders.next(kernel(State::kRunning), true) == Next::kNone);
    CHECK(orders.next(kernel(State::kWaiting), false) == Next::kPassThrough);
    CHECK(orders.next(kernel(State::kStopping), false) == Next::kNone);
    orders.give(kWait);
    CHECK(orders.next(kernel(State::kRunning), true) == Next::kStop);
    CHECK(orders.next(kernel(State::kRunning), false) == Next::kHalt);
    CHECK(orders.next(kernel(State::kWaiting), false) == Next::kNone);
}

TEST_CASE("orders: a launch that takes fewer CTAs than fit is not stopped to be allowed more than that",
          "[orders]") {
    Orders orders = of_four();
    Kernel passes_through = kernel(State::kRunning);
    passes_through.usual_ctas = 2;
    orders.give(run({3}));
    CHECK(orders.next(passes_through, true) == Next::kNone);
    orders.give(run({1}));
    CHECK(orders.next(passes_through, true) == Next::kStop);
}

TEST_CASE(
    "orders: a stream that passes_through is stopped to be given quotas, then shrinks and grows where it is",
    "[orders]") {
    Orders orders = of_four();
    Step step;
    orders.give(run({3}));
    CHECK(orders.next(kernel(State::kRunning), true) == Next::kStop);
    REQUIRE((step = orders.next(kernel(State::kWaiting), false)) == Next::kRun);
    CHECK(step.quotas == QuotaTable{3, 3, 3, 3});
    orders.done(step);
    CHECK(orders.next(kernel(State::kRunning), false) == Next::kNone);
    orders.give(run({1, 0, 2, 3}));
    REQUIRE((step = orders.next(kernel(State::kRunning), false)) == Next::kChange);
    CHECK(step.quotas == QuotaTable{1, 0, 2, 3});
    CHECK(step.growth == 0);
    orders.done(step);
    orders.give(run());  // lifted
    REQUIRE((step = orders.next(kernel(State::kRunning), false)) == Next::kChange);
    CHECK(step.quotas == QuotaTable{4, 4, 4, 4});
    CHECK(step.growth == 2 * (3 + 4 + 2 + 1));
    orders.done(step);
    CHECK(orders.next(kernel(State::kRunning), false) == Next::kNone);
}

TEST_CASE("orders: quotas in which everything fits are none", "[orders]") {
    Orders orders = of_four();
    orders.give(run({4}));
    CHECK(orders.next(kernel(State::kRunning), true) == Next::kNone);
    CHECK(orders.next(kernel(State::kWaiting), false) == Next::kPassThrough);
    orders.give(run({9, 9, 4, 4}));
    CHECK(orders.next(kernel(State::kRunning), true) == Next::kNone);
    CHECK(orders.next(kernel(State::kRunning, 5), true) == Next::kStop);  // of this kernel five fit
}

TEST_CASE(
    "orders: a long launch behind one that had less than it takes begins with a table, and can be given less "
    "without a stop",
    "[orders]") {
    using namespace std::chrono_literals;
    const auto after = [](uint64_t launch, std::chrono::milliseconds remaining, int usual = 2) {
        Orders orders = of_four();
        Step step;
        Kernel first = kernel(State::kWaiting);
        first.launch = 1, first.usual_ctas = 2;
        orders.give(run({0, 2, 2, 2}));
        REQUIRE((step = orders.next(first, false)) == Next::kRun);
        orders.done(step);
        orders.give(run());
        Kernel next = kernel(State::kWaiting);
        next.launch = launch, next.usual_ctas = usual, next.remaining = remaining;
        step = orders.next(next, false);
        if (step == Next::kRun) CHECK(step.quotas == QuotaTable{2, 2, 2, 2});
        return step.what;
    };
    CHECK(after(2, 10ms) == Next::kRun);
    CHECK(after(1, 10ms) == Next::kRun);          // the rest of it, stopped as a whole meanwhile
    CHECK(after(2, 1ms) == Next::kPassThrough);   // short: a table would cost more than it saves
    CHECK(after(3, 10ms) == Next::kPassThrough);  // nothing was wanted of the one before
    CHECK(after(2, 10ms, 0) ==
          Next::kPassThrough);  // how many CTAs are enough is found out by launches that flow
}

TEST_CASE("orders: what has begun with no more blocks than places is left to end", "[orders]") {
    Orders orders = of_four();
    orders.give(run({2, 2, 0, 0}));
    Kernel few = kernel(State::kRunning);
    few.blocks = 10, few.blocks_done = 6;
    CHECK(orders.next(few, true) == Next::kNone);
    few.blocks_done = 5;
    CHECK(orders.next(few, true) == Next::kStop);
    few.state = State::kWaiting, few.blocks_done = 6;
    CHECK(orders.next(few, false) == Next::kRun);  // it has not begun: it keeps to its places
}

TEST_CASE("orders: few blocks are spread, not packed where workers come first", "[orders]") {
    Orders orders = of_four();
    Step step;
    orders.give(run({3, 3, 3, 1}));
    Kernel few = kernel(State::kWaiting);
    few.blocks = 7;
    REQUIRE((step = orders.next(few, false)) == Next::kRun);
    CHECK(step.quotas == QuotaTable{2, 2, 2, 1});
    orders.done(step);
    few.state = State::kRunning, few.blocks_done = 7;
    CHECK(orders.next(few, false) == Next::kNone);  // it runs as it was told
    few.state = State::kWaiting, few.blocks_done = 3;
    REQUIRE((step = orders.next(few, false)) == Next::kRun);
    CHECK(step.quotas == QuotaTable{1, 1, 1, 1});
    few.blocks_done = 0, few.blocks = 100;
    REQUIRE((step = orders.next(few, false)) == Next::kRun);
    CHECK(step.quotas == QuotaTable{3, 3, 3, 1});
    orders.give(run({3, 3, 3, 1}, 5));
    REQUIRE((step = orders.next(few, false)) == Next::kRun);
    CHECK(step.quotas == QuotaTable{2, 2, 2, 1});
}

TEST_CASE("orders: what grows with few blocks left grows evenly", "[orders]") {
    Orders orders = of_four();
    Step step;
    orders.give(run({1}));
    Kernel few = kernel(State::kWaiting);
    few.blocks = 8;
    REQUIRE((step = orders.next(few, false)) == Next::kRun);
    orders.done(step);
    few.state = State::kRunning, few.blocks_done = 4;  // taken, and at work
    orders.give(run({3}));
    REQUIRE((step = orders.next(few, false)) == Next::kChange);
    CHECK(step.quotas == QuotaTable{2, 2, 2, 2});
    CHECK(step.growth == 2 * 4);
}

TEST_CASE("orders: a slice is a run of its own, also where everything fits", "[orders]") {
    Orders orders = of_four();
    orders.give(run({}, 100));
    CHECK(orders.next(kernel(State::kRunning), true) == Next::kStop);
    const Step step = orders.next(kernel(State::kWaiting), false);
    CHECK(step == Next::kRun);
    CHECK(step.slice == 100);
}

TEST_CASE("orders: quotas without a place for the stream would never end", "[orders]") {
    Orders confined(4, {2, 3});
    confined.give(run({2, 2, 0, 0}));
    CHECK(confined.next(kernel(State::kWaiting), false) == Next::kPassThrough);
    confined.give(run({4, 4, 1, 0}));
    CHECK(confined.next(kernel(State::kWaiting), false) == Next::kRun);
    confined.give(run({0, 0, 4, 4}));  // all that it may use
    CHECK(confined.next(kernel(State::kWaiting), false) == Next::kPassThrough);
}

TEST_CASE("orders: unmanaged work has no quotas", "[orders]") {
    Orders orders = of_four();
    orders.give(run({1}));
    Kernel unmanaged = kernel(State::kWaiting, 0);
    unmanaged.managed = false;
    CHECK(orders.next(unmanaged, false) == Next::kPassThrough);
    unmanaged.state = State::kRunning;
    CHECK(orders.next(unmanaged, true) == Next::kNone);
}

TEST_CASE("orders: what is news", "[orders]") {
    Orders orders = of_four();
    CHECK_FALSE(orders.give(run()));  // everything runs at first
    CHECK(orders.give(run({3})));
    CHECK_FALSE(orders.give(run({3})));
    CHECK(orders.give(kWait));
    CHECK(orders.give(run({3}, 5)));
}
