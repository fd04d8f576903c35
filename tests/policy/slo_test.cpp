// Slo as tables; in virtual time: slo_time_test.cpp.
#include <algorithm>

#include "tests/policy/snapshots.h"

namespace smt::tests {
namespace {

using Standing = Attained::State;

Kernel best_effort(uint64_t id = 2) {
    Kernel made = kernel(id, 100000);
    made.session = static_cast<uint32_t>(id);
    return made;
}

// One service and two best-effort tenants, driven by hand.
class Table {
public:
    explicit Table(const Target& target, const SloKnobs& knobs = {}) : policy(make_slo(knobs)) {
        service_.session = 7, service_.tenant = "service", service_.target = target;
    }
    Decision at(TimePoint now, bool works, std::vector<Kernel> others) {
        Snapshot snapshot{device(64), std::move(others)};
        for (Kernel& each : snapshot.kernels) take_over(each);
        if (works) {
            Kernel mine = kernel(1, 100);
            mine.session = 7;
            mine.tenant = "service";
            snapshot.kernels.push_back(mine);
        }
        service_.works(works, now);
        snapshot.services = {service_.take()};
        Decision decision = policy->decide(snapshot, now);
        for (const Confinement& each : decision.confinements) said_[each.kernel] = each;
        for (const Assignment& each : decision.assignments)
            stopped_[each.kernel] = each.action == Assignment::Action::kWait;
        for (const Attained& each : decision.attained) attained = each;
        return decision;
    }
    // A request begins, and is looked at after a twentieth of its time.
    Decision begin(Duration time, int launches = 10, std::vector<Kernel> others = {best_effort()}) {
        now_ += time / 2;
        service_.launches += 1;
        Decision begin = at(now_, true, others);
        service_.launches += static_cast<uint64_t>(launches) - 1;
        at(now_ += time / 20, true, others);
        beside = !stopped_[2];
        return begin;
    }
    Decision look_after(Duration time, int over) {
        service_.over += static_cast<uint64_t>(over);
        return at(now_ += time, true, {best_effort()});
    }
    // A request of so long; what was said when it began. The service is at work for two thirds of the time.
    Decision serve(Duration time, int launches = 10, std::vector<Kernel> others = {best_effort()}) {
        Decision first = begin(time, launches, others);
        service_.over = service_.launches;
        now_ += time - time / 20;
        at(now_, false, others);
        last = at(now_ + time / 3, false, others);
        return first;
    }
    // A request of so long between two decisions.
    void miss(Duration time) {
        service_.launches += 10;
        service_.works(true, now_ += time / 2);
        service_.over = service_.launches;
        service_.works(false, now_ += time);
        pause(time / 2);
    }
    Decision pause(Duration time) { return at(now_ += time, false, {best_effort()}); }
    void serve(int requests, Duration time) {
        for (int i = 0; i < requests; ++i) serve(time);
    }
    const Confinement& said(uint64_t id) { return said_[id]; }
    bool stopped(uint64_t id) { return stopped_[id]; }
    const std::unique_ptr<Policy> policy;
    Attained attained;
    Decision last;
    bool stopping = false;  // stops take longer than anything
    bool beside = false;    // the first tenant had work beside the last request

private:
    void take_over(Kernel& kernel) {
        kernel.multiprocessors = said_[kernel.id].multiprocessors;
        kernel.ahead = said_[kernel.id].ahead;
        if (stopped_[kernel.id]) kernel.state = stopping ? State::kStopping : State::kWaiting;
    }
    Worked service_;
    TimePoint now_ = kBegin;
    std::map<uint64_t, Confinement> said_;
    std::map<uint64_t, bool> stopped_;
};

constexpr int kFirst = 8;  // requests that do not count

}  // namespace

TEST_CASE("slo: it begins with what priority does", "[policy]") {
    for (const Target& target : {Target{.p99 = 10ms}, Target{.slowdown = 1.1}}) {
        Table table(target);
        CHECK(said(table.serve(5ms)) == Said{{2, "wait"}});
        CHECK_FALSE(table.beside);
        CHECK(table.said(2).multiprocessors == 48);  // unmanaged kernels with long blocks
        CHECK(table.said(2).longer_than == 100us);
        CHECK_FALSE(table.said(2).stoppable);
        CHECK(table.said(2).ahead == 0us);
        CHECK_FALSE(table.said(2).reason.empty());
        CHECK(table.attained.state == Standing::kLearning);
    }
}

TEST_CASE("slo: a stopped tenant goes on when the service has paused", "[policy]") {
    Table table({.slowdown = 1.1});
    CHECK(said(table.at(kBegin, true, {best_effort()})) == Said{{2, "wait"}});
    const Decision pause = table.at(kBegin + 5ms, false, {best_effort()});
    CHECK(said(pause).empty());
    CHECK(*pause.again == 200us);
    CHECK(said(table.at(kBegin + 5200us, false, {best_effort()})) == Said{{2, "run"}});
}

TEST_CASE("slo: a tenant that is long in stopping goes on when it has stopped", "[policy]") {
    Table table({.slowdown = 1.1});
    CHECK(said(table.at(kBegin, true, {best_effort()})) == Said{{2, "wait"}});
    table.stopping = true;
    for (const Duration pause : std::vector<Duration>{0us, 200us, 10ms, 2s})
        CHECK(said(table.at(kBegin + 5ms + pause, false, {best_effort()})).empty());
    table.stopping = false;
    CHECK(said(table.at(kBegin + 3s, false, {best_effort()})) == Said{{2, "run"}});
}

TEST_CASE("slo: with much headroom all multiprocessors are reached within 8 requests", "[policy]") {
    Table table({.p99 = 10ms});
    table.serve(kFirst, 5ms);
    std::vector<int> seen;
    for (int i = 0; i < 8; ++i) {
        table.serve(5ms);
        seen.push_back(table.attained.multiprocessors);
    }
    CHECK(seen == std::vector{0, 16, 16, 48, 48, 64, 64, 64});
    CHECK(said(table.serve(5ms)).empty());
    CHECK(table.said(2).multiprocessors == 0);
    CHECK(table.said(2).ahead == Confinement::kLongStops);
    CHECK(table.attained.state == Standing::kKept);
    CHECK(table.attained.seen_p99 == 5ms);
    CHECK(table.attained.headroom == Approx(0.5));
}

TEST_CASE("slo: they stop, move to fewer multiprocessors for a request, and have all behind it", "[policy]") {
    Table table({.p99 = 10ms});
    table.serve(kFirst + 2, 5ms);
    REQUIRE(table.attained.multiprocessors == 16);
    const Decision begins = table.begin(5ms);
    CHECK(said(begins) == Said{{2, "wait"}});
    CHECK(begins.confinements.empty());  // what runs is not told where it is not
    CHECK(table.beside);
    CHECK(table.said(2).multiprocessors == 16);
    CHECK(table.said(2).stoppable);
    CHECK(table.said(2).ahead == 400us);
    CHECK(said(table.look_after(1ms, 2)).empty());
    table.pause(5ms);
    CHECK(table.said(2).multiprocessors == 16);
    CHECK(said(table.pause(200us)).empty());
    CHECK(table.said(2).multiprocessors == 48);
    CHECK_FALSE(table.said(2).stoppable);
    CHECK(table.said(2).ahead == 0us);
    table.pause(700ms);
    CHECK(table.said(2).multiprocessors == 48);
    table.pause(400ms);  // no request for a second
    CHECK(table.said(2).multiprocessors == 0);
}

TEST_CASE("slo: a request that has lost what it may lose has the rest with nothing beside it", "[policy]") {
    Table table({.slowdown = 1.2});
    table.serve(kFirst + 16 + 8, 10ms);
    REQUIRE(table.attained.multiprocessors >= 16);
    table.begin(10ms);  // it may take 12 ms
    CHECK(table.beside);
    CHECK(said(table.look_after(500us, 1)).empty());
    CHECK(said(table.look_after(3900us, 1)).empty());  // the third launch is not over after 4.9 ms
    CHECK(said(table.look_after(200us, 0)) == Said{{2, "wait"}});
    CHECK(said(table.look_after(100us, 2)).empty());
    table.pause(6ms);
    CHECK(said(table.pause(2ms)) == Said{{2, "run"}});
    CHECK(table.attained.state == Standing::kKept);
}

TEST_CASE("slo: beside a request with headroom a kernel that is soon over is not stopped", "[policy]") {
    Table table({.slowdown = 1.2});
    table.serve(kFirst + 16 + 8, 10ms);
    REQUIRE(table.attained.multiprocessors >= 16);
    for (const auto& [left, stops] : {std::pair{400us, false}, {600us, true}}) {  // a quarter of 2 ms
        Kernel other = best_effort();
        other.remaining = left;
        CHECK(said(table.begin(10ms, 10, {other})).size() == stops);
        table.pause(10ms);
        table.pause(10ms);
    }
    Table none({.slowdown = 1.2});
    Kernel other = best_effort();
    other.remaining = 10us;
    CHECK(said(none.begin(10ms, 10, {other})) == Said{{2, "wait"}});
}

TEST_CASE("slo: late requests take it down within four, and a target that cannot be kept is told",
          "[policy]") {
    Table table({.p99 = 10ms});
    table.serve(kFirst + 8 + 20, 5ms);
    REQUIRE(table.attained.multiprocessors == 64);
    std::vector<int> seen;
    for (int i = 0; i < 4; ++i) {
        table.serve(12ms);
        seen.push_back(table.attained.multiprocessors);
    }
    CHECK(seen == std::vector{64, 32, 16, 0});
    CHECK(table.attained.state == Standing::kKept);  // it was not late without them
    table.serve(3, 12ms);
    CHECK(table.attained.state == Standing::kNotKept);
    CHECK(said(table.serve(12ms)) == Said{{2, "wait"}});
    CHECK(table.attained.seen_p99 == 12ms);
    CHECK(table.attained.headroom < 0);
    CHECK(table.said(2).ahead == 0us);  // stops are short again
}

TEST_CASE("slo: a slowdown is of the time by itself, which is learnt first and again", "[policy]") {
    Table table({.slowdown = 1.1});
    table.serve(kFirst + 15, 5ms);
    CHECK(table.attained.state == Standing::kLearning);
    table.serve(1 + 4, 5ms);
    CHECK(table.attained.multiprocessors == 16);
    CHECK(table.attained.headroom == Approx(1 - 1 / 1.1));
    int alone = 0;
    for (int i = 0; i < 400; ++i) {  // late on all multiprocessors
        const bool all = table.attained.multiprocessors == 64;
        table.serve(all ? 5600us : 5ms);
        alone += !table.beside;
    }
    CHECK(alone == 8);
    CHECK(table.attained.multiprocessors == 48);
    table.serve(12, 5600us);
    CHECK(table.attained.multiprocessors == 0);
}

TEST_CASE("slo: where best-effort tenants do not stop soon, a request is not one by itself", "[policy]") {
    Table table({.slowdown = 1.1}, {.not_stopped = 1000});
    for (int i = 0; i < 60; ++i) {
        Kernel stopping = best_effort();
        stopping.state = Kernel::State::kStopping;
        stopping.id = 9;
        table.serve(5ms, 10, {best_effort(), stopping});
    }
    CHECK(table.attained.state == Standing::kLearning);
}

TEST_CASE("slo: requests are compared with their own kind", "[policy]") {
    Table table({.slowdown = 1.1});
    for (int i = 0; i < 200; ++i) table.serve(5ms, 10), table.serve(15ms, 30);
    CHECK(table.attained.multiprocessors == 64);
    for (int i = 0; i < 3; ++i) table.serve(5ms, 10), table.serve(18ms, 30);
    CHECK(table.attained.multiprocessors < 64);
}

TEST_CASE("slo: requests of another kind have nothing beside them until they are known", "[policy]") {
    Table table({.slowdown = 1.1});
    table.serve(100, 5ms);
    REQUIRE(table.attained.multiprocessors == 64);
    table.serve(50ms, 1000);
    CHECK(table.beside);  // nothing shows in advance what it is
    int alone = 0;
    for (int i = 0; i < 40; ++i) {
        table.serve(50ms, 1000);
        alone += !table.beside;
    }
    CHECK(alone == 16);
    CHECK(table.attained.multiprocessors == 64);
}

TEST_CASE("slo: requests that come out as one count as several", "[policy]") {
    Table table({.p99 = 6ms});
    for (int i = 0; i < 40; ++i) table.serve(5ms, 10), table.serve(10ms, 20);
    CHECK(table.attained.state == Standing::kKept);
    CHECK(table.attained.seen_p99 == 5ms);
}

TEST_CASE("slo: a request that no decision saw says nothing of levels", "[policy]") {
    Table seen({.p99 = 10ms}), unseen({.p99 = 10ms});
    seen.serve(kFirst, 5ms), unseen.serve(kFirst, 5ms);
    for (int i = 0; i < 20; ++i) unseen.miss(5ms), seen.serve(5ms);
    CHECK(unseen.attained.multiprocessors == 0);
    CHECK(unseen.attained.seen_p99 == 5ms);
    CHECK(seen.attained.multiprocessors == 64);
    for (int i = 0; i < 20; ++i) seen.miss(12ms);  // late, whatever the level was
    CHECK(seen.attained.multiprocessors == 64);
    CHECK(seen.attained.seen_p99 == 12ms);
}

TEST_CASE("slo: requests with nothing beside them say nothing of levels", "[policy]") {
    Table table({.p99 = 10ms});
    for (int i = 0; i < 100; ++i) table.serve(5ms, 10, std::vector<Kernel>{});
    CHECK(table.attained.multiprocessors == 0);
}

TEST_CASE("slo: levels are learnt for each set of best-effort tenants", "[policy]") {
    Table table({.p99 = 10ms});
    table.serve(kFirst + 8, 5ms);
    CHECK(table.attained.multiprocessors == 64);
    CHECK(said(table.serve(5ms, 10, {best_effort(2), best_effort(3)})) == Said{{2, "wait"}, {3, "wait"}});
}

TEST_CASE("slo: another policy meanwhile does not lose what was learnt", "[policy]") {
    Table table({.slowdown = 1.1}), later({.slowdown = 1.1}), other({.slowdown = 1.1});
    table.serve(60, 5ms);
    REQUIRE(table.attained.multiprocessors == 64);
    later.policy->recall(*table.policy);
    CHECK(said(later.serve(5ms)).empty());
    CHECK(later.attained.multiprocessors == 64);
    CHECK(later.attained.state == Standing::kKept);
    other.policy->recall(*make_policy("priority"));
    CHECK(said(other.serve(5ms)) == Said{{2, "wait"}});
}

TEST_CASE("slo: launches begin unasked where they change nothing", "[policy]") {
    Table table({.p99 = 10ms});
    const auto lets = [&] {
        return std::pair{table.policy->lets_begin("service", 0), table.policy->lets_begin("t2", 0)};
    };
    table.begin(5ms);
    CHECK(lets() == std::pair{true, false});  // the others wait
    table.pause(5ms);
    CHECK(lets() == std::pair{true, false});
    table.pause(200us);
    CHECK(lets() == std::pair{false, true});  // the next request stops them
    CHECK(table.policy->leaves_alone());
    table.serve(kFirst + 1, 5ms);
    table.begin(5ms);
    REQUIRE(table.beside);
    CHECK(lets() == std::pair{true, true});  // they have moved
    table.pause(5ms);
    table.at(kBegin + 1s, false, {});  // their stream has no work, and was told of fewer multiprocessors
    CHECK(lets() == std::pair{false, false});
    CHECK_FALSE(table.policy->leaves_alone());
    table.serve(20, 5ms);
    REQUIRE(table.attained.multiprocessors == 64);
    CHECK(lets() == std::pair{true, true});
    CHECK_FALSE(table.policy->lets_begin("another", 0));
}

TEST_CASE("slo: of two services the one that allows less counts", "[policy]") {
    const auto policy = make_slo();
    Worked strict, loose;
    strict.session = 1, strict.tenant = "strict", strict.target.p99 = 5ms;
    loose.session = 2, loose.tenant = "loose", loose.target.p99 = 50ms;
    TimePoint now = kBegin;
    std::map<uint64_t, Confinement> said_of;
    const auto at = [&](std::vector<uint32_t> works) {
        for (Worked* const each : {&strict, &loose})
            each->works(std::ranges::count(works, each->session), now);
        Snapshot snapshot{device(64), {best_effort(3)}};
        Kernel& other = snapshot.kernels.front();
        other.multiprocessors = said_of[3].multiprocessors, other.ahead = said_of[3].ahead;
        for (const uint32_t each : works) {
            snapshot.kernels.push_back(kernel(10 + each, 100));
            snapshot.kernels.back().session = each;
        }
        snapshot.services = {strict.take(), loose.take()};
        const Decision decision = policy->decide(snapshot, now);
        for (const Confinement& each : decision.confinements) said_of[each.kernel] = each;
        return decision;
    };
    for (int i = 0; i < kFirst + 10; ++i) {  // the loose one has headroom, the other one has not come yet
        now += 50ms, loose.launches += 5;
        at({2});
        now += 5ms, at({});
        now += 5ms, at({});
    }
    now += 50ms, ++loose.launches;
    CHECK(said(at({2})).empty());
    now += 1ms, ++strict.launches;
    CHECK(said(at({2, 1})) == Said{{3, "wait"}});  // neither of the services is held back
    CHECK(said_of[3].multiprocessors == 48);
    now += 1ms, at({});
    for (int i = 0; i < 30; ++i) {
        now += 50ms, ++loose.launches;
        at({2});
        now += 5ms, at({});
    }
    CHECK(said_of[3].multiprocessors == 0);
}

TEST_CASE("slo: the sets of multiprocessors that it needs", "[policy]") {
    CHECK(make_slo()->parts(device(132)) == std::vector{33, 66, 99});
    CHECK(make_slo()->parts(device(4)) == std::vector{1, 2, 3});
}

}  // namespace smt::tests
