#include <catch2/catch.hpp>

#include <map>

#include "runtime/schedule/policy.h"

using namespace smt::runtime::schedule;
using State = Kernel::State;
using Action = Assignment::Action;

namespace {

Kernel kernel(uint64_t id, const char* tenant, int priority, State state, bool managed = true) {
    Kernel made;
    made.id = id;
    made.tenant = tenant;
    made.priority = priority;
    made.state = state;
    made.managed = managed;
    return made;
}

std::map<uint64_t, Action> decided(const char* policy, std::vector<Kernel> kernels) {
    std::map<uint64_t, Action> actions;
    const Decision decision = make_policy(policy)->decide({{132}, std::move(kernels)}, TimePoint{});
    for (const Assignment& each : decision.assignments) {
        CHECK_FALSE(each.reason.empty());
        actions[each.kernel] = each.action;
    }
    return actions;
}

}  // namespace

TEST_CASE("policies are found by name", "[schedule]") {
    for (const std::string& name : policy_names()) CHECK(make_policy(name)->name() == name);
    CHECK(make_policy("nonsense") == nullptr);
}

TEST_CASE("priority: the most urgent run, the others wait", "[schedule]") {
    using Actions = std::map<uint64_t, Action>;
    const Kernel low = kernel(1, "low", -1, State::kRunning), stopped = kernel(1, "low", -1, State::kWaiting);
    const Kernel normal = kernel(2, "normal", 0, State::kRunning), urgent = kernel(3, "urgent", 5, State::kRunning);
    CHECK(decided("priority", {}).empty());
    CHECK(decided("priority", {low}).empty());                        // alone
    CHECK(decided("priority", {low, urgent}) == Actions{{1, Action::kWait}});
    CHECK(decided("priority", {low, normal, urgent}) == Actions{{1, Action::kWait}, {2, Action::kWait}});
    CHECK(decided("priority", {stopped, urgent}).empty());            // stays stopped
    CHECK(decided("priority", {stopped}) == Actions{{1, Action::kRun}});
    CHECK(decided("priority", {normal, kernel(4, "other", 0, State::kRunning)}).empty());   // equals
    CHECK(decided("priority", {low, kernel(3, "urgent", 5, State::kWaiting)}) ==
          Actions{{1, Action::kWait}, {3, Action::kRun}});
}

TEST_CASE("priority: the others wait until the urgent has been idle for a while", "[schedule]") {
    using namespace std::chrono_literals;
    const auto policy = make_policy("priority");
    const TimePoint begin = TimePoint{} + 1h;
    const Kernel stopped = kernel(1, "low", -1, State::kWaiting), urgent = kernel(3, "urgent", 5, State::kRunning);
    CHECK(policy->decide({{132}, {stopped, urgent}}, begin).assignments.empty());
    const Decision gap = policy->decide({{132}, {stopped}}, begin + 1ms);   // its work has ended
    CHECK(gap.assignments.empty());
    REQUIRE(gap.again);
    CHECK(*gap.again == 200us);
    CHECK(*policy->decide({{132}, {stopped}}, begin + 1ms + 150us).again == 50us);
    CHECK(policy->decide({{132}, {stopped, urgent}}, begin + 1ms + 180us).assignments.empty());   // there it is again
    CHECK(*policy->decide({{132}, {stopped}}, begin + 2ms).again == 200us);
    const Decision over = policy->decide({{132}, {stopped}}, begin + 2ms + 200us);
    REQUIRE(over.assignments.size() == 1);
    CHECK(over.assignments[0].action == Action::kRun);
    CHECK_FALSE(over.again);
}

TEST_CASE("priority: opaque work is held back, and others wait for it", "[schedule]") {
    using Actions = std::map<uint64_t, Action>;
    const Kernel running = kernel(1, "low", 0, State::kRunning, false), waiting = kernel(1, "low", 0, State::kWaiting, false);
    CHECK(decided("priority", {running}).empty());
    CHECK(decided("priority", {running, kernel(2, "high", 1, State::kRunning)}) == Actions{{1, Action::kWait}});
    CHECK(decided("priority", {waiting, kernel(2, "high", 1, State::kRunning)}).empty());
    CHECK(decided("priority", {waiting}) == Actions{{1, Action::kRun}});
    CHECK(decided("priority", {kernel(1, "low", 0, State::kRunning), kernel(2, "high", 1, State::kRunning, false)}) ==
          Actions{{1, Action::kWait}});
}

TEST_CASE("priority: what is stopping is left to stop", "[schedule]") {
    CHECK(decided("priority", {kernel(1, "low", 0, State::kStopping), kernel(2, "high", 1, State::kRunning)}).empty());
    CHECK(decided("priority", {kernel(1, "low", 0, State::kStopping)}).empty());
}

TEST_CASE("fifo: nobody is stopped, and who waits goes on", "[schedule]") {
    CHECK(decided("fifo", {kernel(1, "low", -1, State::kRunning), kernel(2, "high", 1, State::kRunning)}).empty());
    CHECK(decided("fifo", {kernel(1, "low", -1, State::kWaiting), kernel(2, "high", 1, State::kRunning)}) ==
          std::map<uint64_t, Action>{{1, Action::kRun}});
}
