#include "runtime/schedule/policy.h"

#include <catch2/catch.hpp>
#include <map>

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
    const Kernel normal = kernel(2, "normal", 0, State::kRunning),
                 urgent = kernel(3, "urgent", 5, State::kRunning);
    CHECK(decided("priority", {}).empty());
    CHECK(decided("priority", {low}).empty());  // alone
    CHECK(decided("priority", {low, urgent}) == Actions{{1, Action::kWait}});
    CHECK(decided("priority", {low, normal, urgent}) == Actions{{1, Action::kWait}, {2, Action::kWait}});
    CHECK(decided("priority", {stopped, urgent}).empty());  // stays stopped
    CHECK(decided("priority", {stopped}) == Actions{{1, Action::kRun}});
    CHECK(decided("priority", {normal, kernel(4, "other", 0, State::kRunning)}).empty());  // equals
    CHECK(decided("priority", {low, kernel(3, "urgent", 5, State::kWaiting)}) ==
          Actions{{1, Action::kWait}, {3, Action::kRun}});
}

TEST_CASE("priority: what could not be stopped in time is not stopped once there is no reason",
          "[schedule]") {
    using namespace std::chrono_literals;
    const auto policy = make_policy("priority");
    const TimePoint begin = TimePoint{} + 1h;
    const Kernel low = kernel(1, "low", -1, State::kRunning),
                 urgent = kernel(3, "urgent", 5, State::kRunning);
    REQUIRE(policy->decide({{132}, {low, urgent}}, begin).assignments.size() == 1);
    CHECK(policy->decide({{132}, {low}}, begin + 1ms)
              .assignments.empty());  // it still runs; the urgent may be back in a moment
    const Decision after = policy->decide({{132}, {low}}, begin + 2ms);
    REQUIRE(after.assignments.size() == 1);
    CHECK(after.assignments[0].action == Action::kRun);
    CHECK(policy->decide({{132}, {low}}, begin + 3ms).assignments.empty());  // said once
}

TEST_CASE("priority: the others wait until the urgent has been idle for a while", "[schedule]") {
    using namespace std::chrono_literals;
    const auto policy = make_policy("priority");
    const TimePoint begin = TimePoint{} + 1h;
    const Kernel stopped = kernel(1, "low", -1, State::kWaiting),
                 urgent = kernel(3, "urgent", 5, State::kRunning);
    CHECK(policy->decide({{132}, {stopped, urgent}}, begin).assignments.empty());
    const Decision gap = policy->decide({{132}, {stopped}}, begin + 1ms);  // its work has ended
    CHECK(gap.assignments.empty());
    REQUIRE(gap.again);
    CHECK(*gap.again == 200us);
    CHECK(*policy->decide({{132}, {stopped}}, begin + 1ms + 150us).again == 50us);
    CHECK(policy->decide({{132}, {stopped, urgent}}, begin + 1ms + 180us)
              .assignments.empty());  // there it is again
    CHECK(*policy->decide({{132}, {stopped}}, begin + 2ms).again == 200us);
    const Decision over = policy->decide({{132}, {stopped}}, begin + 2ms + 200us);
    REQUIRE(over.assignments.size() == 1);
    CHECK(over.assignments[0].action == Action::kRun);
    REQUIRE(over.again);  // to lift what else it did for the urgent
    CHECK(*over.again > 500ms);
}

TEST_CASE("priority: no tenant waits for a service whose last requests were far apart", "[schedule]") {
    using namespace std::chrono_literals;
    const auto policy = make_policy("priority");
    const Kernel stopped = kernel(1, "low", -1, State::kWaiting),
                 urgent = kernel(3, "urgent", 5, State::kRunning);
    TimePoint now = TimePoint{} + 1h;
    // A request of 50 us, and whether the other one goes on at its end.
    const auto goes_on_after_request = [&] {
        policy->decide({{132}, {stopped, urgent}}, now);
        now += 50us;
        return !policy->decide({{132}, {stopped}}, now).assignments.empty();
    };
    CHECK_FALSE(goes_on_after_request());
    now += 3ms;
    CHECK_FALSE(goes_on_after_request());  // it came late once
    now += 3ms;
    CHECK(goes_on_after_request());
    now += 3ms;
    CHECK(goes_on_after_request());
    now += 100us;  // sooner than expected
    CHECK_FALSE(goes_on_after_request());
    now += 3ms;
    CHECK_FALSE(goes_on_after_request());
}

TEST_CASE("priority: how long ago another program ended says nothing of how a new one comes back",
          "[schedule]") {
    using namespace std::chrono_literals;
    const auto policy = make_policy("priority");
    const Kernel stopped = kernel(1, "low", -1, State::kWaiting);
    Kernel first = kernel(3, "first", 5, State::kRunning), next = kernel(4, "next", 5, State::kRunning);
    first.session = 1;
    next.session = 2;
    TimePoint now = TimePoint{} + 1h;
    const auto goes_on_after = [&](const Kernel& urgent) {
        policy->decide({{132}, {stopped, urgent}}, now);
        now += 50us;
        return !policy->decide({{132}, {stopped}}, now).assignments.empty();
    };
    CHECK_FALSE(goes_on_after(first));
    now += 500ms;
    CHECK_FALSE(goes_on_after(next));  // what it begins with
    now += 3ms;
    CHECK_FALSE(goes_on_after(next));  // it came late once, and its first launches may follow at once
    now += 20us;
    CHECK_FALSE(goes_on_after(next));
}

TEST_CASE("priority: the next launch of any program is waited for, however seldom each comes", "[schedule]") {
    using namespace std::chrono_literals;
    const auto policy = make_policy("priority");
    const Kernel stopped = kernel(1, "low", -1, State::kWaiting);
    Kernel one = kernel(3, "one", 5, State::kRunning), other = kernel(4, "other", 5, State::kRunning);
    one.session = 1;
    other.session = 2;
    TimePoint now = TimePoint{} + 1h;
    for (int i = 0; i < 20; ++i, now += 100us) {  // each every 300 us
        policy->decide({{132}, {stopped, i % 2 ? one : other}}, now);
        now += 50us;
        CHECK(policy->decide({{132}, {stopped}}, now).assignments.empty());
    }
}

TEST_CASE("priority: unmanaged work is held back, and others wait for it", "[schedule]") {
    using Actions = std::map<uint64_t, Action>;
    const Kernel running = kernel(1, "low", 0, State::kRunning, false),
                 waiting = kernel(1, "low", 0, State::kWaiting, false);
    CHECK(decided("priority", {running}).empty());
    CHECK(decided("priority", {running, kernel(2, "high", 1, State::kRunning)}) ==
          Actions{{1, Action::kWait}});
    CHECK(decided("priority", {waiting, kernel(2, "high", 1, State::kRunning)}).empty());
    CHECK(decided("priority", {waiting}) == Actions{{1, Action::kRun}});
    CHECK(decided("priority", {kernel(1, "low", 0, State::kRunning),
                               kernel(2, "high", 1, State::kRunning, false)}) == Actions{{1, Action::kWait}});
}

TEST_CASE("priority: long unmanaged kernels keep to a part while more urgent work runs or has just run",
          "[schedule]") {
    using namespace std::chrono_literals;
    const auto policy = make_policy("priority");
    const TimePoint begin = TimePoint{} + 1h;
    Kernel low = kernel(1, "low", -1, State::kRunning, false);
    const Kernel normal = kernel(2, "normal", 0, State::kRunning),
                 urgent = kernel(3, "urgent", 5, State::kRunning);
    CHECK(policy->decide({{132}, {low}}, begin).confinements.empty());  // alone
    const Decision there = policy->decide({{132}, {low, normal, urgent}}, begin);
    REQUIRE(there.confinements.size() == 2);  // of all that are less urgent, and of no other
    for (size_t i = 0; i < 2; ++i) {
        CHECK(there.confinements[i].kernel == i + 1);
        CHECK(there.confinements[i].multiprocessors == 99);
        CHECK(there.confinements[i].longer_than == 100us);
        CHECK_FALSE(there.confinements[i].reason.empty());
    }
    low.multiprocessors = 99;
    CHECK(policy->decide({{132}, {low, urgent}}, begin + 1ms).confinements.empty());  // it is so already
    const Decision gone = policy->decide({{132}, {low}}, begin + 2ms);                // worked until now
    CHECK(gone.confinements.empty());
    REQUIRE(gone.again);
    CHECK(*gone.again == 200us);  // then it need not wait any more
    CHECK(*policy->decide({{132}, {low}}, begin + 3ms).again == 999ms);
    CHECK(policy->decide({{132}, {low}}, begin + 900ms).confinements.empty());
    const Decision over = policy->decide({{132}, {low}}, begin + 1002ms);
    REQUIRE(over.confinements.size() == 1);
    CHECK(over.confinements[0].multiprocessors == 0);
    low.multiprocessors = 0;
    CHECK(policy->decide({{132}, {low}}, begin + 1003ms).confinements.empty());
}

TEST_CASE("priority: what arrives after the urgent has left a moment ago is confined too", "[schedule]") {
    using namespace std::chrono_literals;
    const auto policy = make_policy("priority");
    const TimePoint begin = TimePoint{} + 1h;
    policy->decide({{132}, {kernel(3, "urgent", 5, State::kRunning)}}, begin);
    policy->decide({{132}, {}}, begin + 1ms);
    const Decision late = policy->decide({{132}, {kernel(1, "low", -1, State::kRunning)}}, begin + 5ms);
    REQUIRE(late.confinements.size() == 1);
    CHECK(late.confinements[0].multiprocessors == 99);
    CHECK(policy->decide({{2}, {kernel(4, "low", -1, State::kRunning)}}, begin + 6ms)
              .confinements.empty());  // nothing to share
}

TEST_CASE("what a policy confines to is known in advance", "[schedule]") {
    CHECK(make_policy("priority")->parts({132}) == std::vector{99});
    CHECK(make_policy("priority")->parts({2}).empty());
    CHECK(make_policy("priority-whole")->parts({132}).empty());
    CHECK(make_policy("fifo")->parts({132}).empty());
}

TEST_CASE("priority: a tenant that is there since a moment may be about to work", "[schedule]") {
    using namespace std::chrono_literals;
    const auto policy = make_policy("priority");
    const TimePoint begin = TimePoint{} + 1h;
    const Kernel low = kernel(1, "low", -1, State::kRunning, false);
    CHECK(policy->decide({{132}, {low}, {{-1, begin}}}, begin).confinements.empty());  // itself
    CHECK(policy->decide({{132}, {low}, {{0, begin - 2s}}}, begin).confinements.empty());
    const Decision there = policy->decide({{132}, {low}, {{0, begin - 200ms}}}, begin);
    REQUIRE(there.confinements.size() == 1);
    CHECK(*there.again == 800ms);
    CHECK(there.assignments.empty());
}

TEST_CASE("priority-whole: the same, and no tenant is confined", "[schedule]") {
    const auto policy = make_policy("priority-whole");
    CHECK(policy->traits().stops == Policy::Stops::kLessUrgent);
    const Decision decision = policy->decide(
        {{132}, {kernel(1, "low", -1, State::kRunning, false), kernel(2, "high", 1, State::kRunning)}}, {});
    CHECK(decision.confinements.empty());
    REQUIRE(decision.assignments.size() == 1);
    CHECK(decision.assignments[0].action == Action::kWait);
}

TEST_CASE("fifo: no tenant is confined", "[schedule]") {
    CHECK(
        make_policy("fifo")
            ->decide({{132},
                      {kernel(1, "low", -1, State::kRunning, false), kernel(2, "high", 1, State::kRunning)}},
                     {})
            .confinements.empty());
}

TEST_CASE("priority: what is stopping is left to stop", "[schedule]") {
    CHECK(decided("priority", {kernel(1, "low", 0, State::kStopping), kernel(2, "high", 1, State::kRunning)})
              .empty());
    CHECK(decided("priority", {kernel(1, "low", 0, State::kStopping)}).empty());
}

TEST_CASE("fifo: no launch is stopped, and waiting ones go on", "[schedule]") {
    CHECK(decided("fifo", {kernel(1, "low", -1, State::kRunning), kernel(2, "high", 1, State::kRunning)})
              .empty());
    CHECK(decided("fifo", {kernel(1, "low", -1, State::kWaiting), kernel(2, "high", 1, State::kRunning)}) ==
          std::map<uint64_t, Action>{{1, Action::kRun}});
}
