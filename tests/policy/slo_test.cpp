// Slo as tables, and in virtual time: a service whose requests come by themselves, beside a training.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "tests/policy/virtual_gpu.h"

namespace smt::tests {
namespace {

using Standing = Attained::State;

// ---- Tables

Kernel best_effort(uint64_t id = 2) {
    Kernel made = kernel(id, 100000);
    made.session = static_cast<uint32_t>(id);
    return made;
}

// One service and two best-effort tenants, driven by hand.
class Table {
public:
    explicit Table(const Target& target, const SloKnobs& knobs = {}) : policy_(make_slo(knobs)) {
        service_ = {7, "service", target, 0};
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
        snapshot.services = {service_};
        Decision decision = policy_->decide(snapshot, now);
        for (const Confinement& each : decision.confinements) said_[each.kernel] = each;
        for (const Assignment& each : decision.assignments)
            stopped_[each.kernel] = each.action == Assignment::Action::kWait;
        for (const Attained& each : decision.attained) attained = each;
        return decision;
    }
    // A request of so long; what was said when it began. The service is at work for two thirds of the time.
    Decision serve(Duration time, int launches = 10, std::vector<Kernel> others = {best_effort()}) {
        now_ += time / 2;
        service_.launches += 1;
        Decision begin = at(now_, true, others);
        service_.launches += static_cast<uint64_t>(launches) - 1;
        now_ += time / 20;
        at(now_, true, others);
        now_ += time - time / 20;
        at(now_, false, others);
        last = at(now_ + time / 3, false, others);
        return begin;
    }
    Decision pause(Duration time) { return at(now_ += time, false, {best_effort()}); }
    void serve(int requests, Duration time) {
        for (int i = 0; i < requests; ++i) serve(time);
    }
    const Confinement& said(uint64_t id) { return said_[id]; }
    Attained attained;
    Decision last;

private:
    void take_over(Kernel& kernel) {
        kernel.multiprocessors = said_[kernel.id].multiprocessors;
        kernel.ahead = said_[kernel.id].ahead;
        if (stopped_[kernel.id]) kernel.state = Kernel::State::kWaiting;
    }
    std::unique_ptr<Policy> policy_;
    Service service_;
    TimePoint now_ = kBegin;
    std::map<uint64_t, Confinement> said_;
    std::map<uint64_t, bool> stopped_;
};

}  // namespace

TEST_CASE("slo: it begins with half of the multiprocessors, or stopped until it is known what is late",
          "[policy]") {
    Table table({.p99 = 10ms}), slowdown({.slowdown = 1.1});
    const Decision begin = table.serve(5ms);
    CHECK(said(begin).empty());
    CHECK(table.said(2).multiprocessors == 32);
    CHECK(table.said(2).stoppable);
    CHECK(table.said(2).ahead == 0us);
    CHECK_FALSE(table.said(2).reason.empty());
    CHECK(table.attained.state == Standing::kLearning);
    CHECK(said(slowdown.serve(5ms)) == Said{{2, "wait"}});
    CHECK(slowdown.said(2).multiprocessors == 32);
}

TEST_CASE("slo: a stopped tenant goes on when the service has paused", "[policy]") {
    Table table({.slowdown = 1.1});
    CHECK(said(table.at(kBegin, true, {best_effort()})) == Said{{2, "wait"}});
    const Decision pause = table.at(kBegin + 5ms, false, {best_effort()});
    CHECK(said(pause).empty());
    CHECK(*pause.again == 200us);
    CHECK(said(table.at(kBegin + 5200us, false, {best_effort()})) == Said{{2, "run"}});
}

TEST_CASE("slo: with headroom they go on beside requests, on more and more multiprocessors", "[policy]") {
    Table table({.p99 = 10ms});
    table.serve(8, 5ms);
    std::vector<std::pair<int, Duration>> seen;
    for (int i = 0; i < 4; ++i) {
        CHECK(said(table.serve(5ms)).empty());
        seen.emplace_back(table.said(2).multiprocessors, table.said(2).ahead);
        table.serve(7, 5ms);
    }
    CHECK(seen == std::vector<std::pair<int, Duration>>{
                      {32, 0us}, {48, 0us}, {0, 400us}, {0, Confinement::kLongStops}});
    CHECK(table.attained.state == Standing::kKept);
    CHECK(table.attained.seen_p99 == 5ms);
    CHECK(table.attained.headroom == Approx(0.5));
    CHECK(table.attained.multiprocessors == 64);
}

TEST_CASE("slo: a level holds between requests, until the service has had none for a while", "[policy]") {
    Table table({.p99 = 10ms});
    table.serve(8 + 1, 5ms);
    CHECK(table.last.confinements.empty());
    CHECK(table.pause(900ms).confinements.empty());
    CHECK(table.said(2).multiprocessors == 32);
    const Decision later = table.pause(150ms);
    REQUIRE(later.confinements.size() == 1);
    CHECK(later.confinements[0].multiprocessors == 0);
}

TEST_CASE("slo: beside a service that mostly pauses a stop is better than a part of the multiprocessors",
          "[policy]") {
    Table table({.p99 = 10ms});
    for (int i = 0; i < 8 + 4; ++i) table.serve(5ms), table.pause(30ms);
    CHECK(said(table.serve(5ms)) == Said{{2, "wait"}});
    CHECK(table.said(2).multiprocessors == 0);
    for (int i = 0; i < 20; ++i) table.serve(5ms), table.pause(30ms);
    CHECK(said(table.serve(5ms)).empty());  // all multiprocessors are better still
    CHECK(table.attained.multiprocessors == 64);
}

TEST_CASE("slo: late requests take it down, and a target that cannot be kept is told", "[policy]") {
    Table table({.p99 = 10ms});
    table.serve(8 + 8 * 5 + 20, 5ms);
    REQUIRE(table.attained.multiprocessors == 64);
    table.serve(6, 12ms);
    CHECK(table.attained.multiprocessors == 0);
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
    table.serve(8 + 15, 5ms);
    CHECK(table.attained.state == Standing::kLearning);
    table.serve(1 + 1, 5ms);
    CHECK(table.attained.multiprocessors == 32);
    CHECK(table.attained.headroom == Approx(1 - 1 / 1.1));
    int stopped = 0;
    for (int i = 0; i < 400; ++i) {  // late on all multiprocessors
        const bool all = table.said(2).multiprocessors == 0;
        stopped += !said(table.serve(all ? 5600us : 5ms)).empty();
    }
    CHECK(stopped == 8);
    CHECK(table.attained.multiprocessors == 48);
    table.serve(12, 5600us);
    CHECK(table.attained.multiprocessors <= 16);  // where a stop is as good
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
    for (int i = 0; i < 8 + 16; ++i) table.serve(5ms, 10), table.serve(15ms, 30);
    for (int i = 0; i < 200; ++i) table.serve(5ms, 10), table.serve(15ms, 30);
    CHECK(table.attained.multiprocessors == 64);
    for (int i = 0; i < 3; ++i) table.serve(5ms, 10), table.serve(18ms, 30);
    CHECK(table.attained.multiprocessors < 64);
}

TEST_CASE("slo: requests of another kind have nothing beside them until they are known", "[policy]") {
    Table table({.slowdown = 1.1});
    table.serve(100, 5ms);
    REQUIRE(table.attained.multiprocessors == 64);
    CHECK(said(table.serve(50ms, 1000)).empty());  // nothing shows in advance what it is
    int stopped = 0;
    for (int i = 0; i < 40; ++i) stopped += !said(table.serve(50ms, 1000)).empty();
    CHECK(stopped == 16);
    CHECK(table.attained.multiprocessors == 64);
}

TEST_CASE("slo: requests that come out as one count as several", "[policy]") {
    Table table({.p99 = 6ms});
    for (int i = 0; i < 40; ++i) table.serve(5ms, 10), table.serve(10ms, 20);
    CHECK(table.attained.state == Standing::kKept);
    CHECK(table.attained.seen_p99 == 5ms);
}

TEST_CASE("slo: requests with nothing beside them say nothing of levels", "[policy]") {
    Table table({.p99 = 10ms});
    for (int i = 0; i < 100; ++i) table.serve(5ms, 10, std::vector<Kernel>{});
    CHECK(table.attained.multiprocessors == 32);
}

TEST_CASE("slo: levels are learnt for each set of best-effort tenants", "[policy]") {
    Table table({.p99 = 10ms});
    table.serve(8 + 8 * 5, 5ms);
    CHECK(table.attained.multiprocessors == 64);
    const std::vector<Kernel> both{best_effort(2), best_effort(3)};
    table.serve(5ms, 10, both);
    CHECK(table.said(2).multiprocessors == 32);
    CHECK(table.said(3).multiprocessors == 32);
}

TEST_CASE("slo: of two services the one that allows less counts", "[policy]") {
    const auto policy = make_slo();
    Service strict{1, "strict", {.p99 = 5ms}, 0}, loose{2, "loose", {.p99 = 50ms}, 0};
    TimePoint now = kBegin;
    std::map<uint64_t, Confinement> said_of;
    const auto at = [&](std::vector<uint32_t> works) {
        Snapshot snapshot{device(64), {best_effort(3)}};
        Kernel& other = snapshot.kernels.front();
        other.multiprocessors = said_of[3].multiprocessors, other.ahead = said_of[3].ahead;
        for (const uint32_t each : works) {
            snapshot.kernels.push_back(kernel(10 + each, 100));
            snapshot.kernels.back().session = each;
        }
        snapshot.services = {strict, loose};
        const Decision decision = policy->decide(snapshot, now);
        for (const Confinement& each : decision.confinements) said_of[each.kernel] = each;
        return decision;
    };
    for (int i = 0; i < 8 + 8 * 5; ++i) {  // the loose one has headroom, the other one has not come yet
        now += 50ms, loose.launches += 5;
        at({2});
        now += 5ms, at({});
        now += 5ms, at({});
    }
    now += 50ms, ++loose.launches;
    CHECK(said(at({2})).empty());
    now += 1ms, ++strict.launches;
    CHECK(said(at({2, 1})).empty());  // neither of the services is held back
    CHECK(said_of[3].multiprocessors == 32);
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

// ---- In virtual time

namespace {

constexpr double kSloMs = 1e6;  // ns
constexpr int kSloSms = 16;

// A request is twenty small launches, which leave most of the device idle.
Program service(const Target& target) {
    Program made;
    made.kernel = kernel(1, kSloSms, nth_of(kSm, 8));
    made.kernel.tenant = "service";
    made.kernel.session = 1;
    made.kernel.priority = 1;
    made.kernel.ctas_per_sm = 8;
    made.work = {100'000, 0.1, 0.1, 0.5};
    made.launches = 20;
    made.target = target;
    return made;
}

// Fills the device, and asks for more memory than there is.
Program training(double memory) {
    Program made;
    made.kernel = kernel(2, kSloSms * 4 * 4, nth_of(kSm, 4));
    made.kernel.tenant = "training";
    made.kernel.session = 2;
    made.kernel.ctas_per_sm = 4;
    made.work = {60'000, 0.2, memory, 0.6};
    made.launches = kEndless;
    return made;
}

// A Poisson process, with another rate from `from_ns` on.
std::vector<double> arrivals(double until_ns, double rate, double from_ns, double later_rate) {
    std::mt19937 random{3};
    std::vector<double> all;
    for (double now = 0; now < until_ns;) {
        now += std::exponential_distribution<double>(now < from_ns ? rate : later_rate)(random) * kSloMs;
        all.push_back(now);
    }
    return all;
}

struct Outcome {
    double p99 = 0, later_p99 = 0;  // ms, of requests without the time in which they wait for others
    double queued = 0, later_queued = 0;
    double training = 0;  // blocks
};

double p99_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(std::ceil(0.99 * static_cast<double>(values.size()))) - 1];
}

constexpr double kUntil = 16'000 * kSloMs, kHalf = kUntil / 2, kLearnt = 1500 * kSloMs;

Outcome run(std::string_view policy_name, const Target& target, double load, double memory) {
    constexpr double kAlone = 2.2;  // ms
    VirtualGpu gpu(device(kSloSms));
    Program one = service(target);
    one.requests_ns = arrivals(kUntil - 200 * kSloMs, load / kAlone, kHalf, 2 * load / kAlone);
    gpu.add(one);
    if (memory > 0) gpu.add(training(memory));
    const auto policy = make_policy(policy_name);
    gpu.run(*policy, kUntil);
    const Program& served = gpu.programs.front();
    std::vector<double> times, later, queued, later_queued;
    for (size_t i = 0; i < served.served_ns.size(); ++i) {
        if (served.begun_ns[i] < kLearnt) continue;
        const bool is_later = served.begun_ns[i] >= kHalf;
        (is_later ? later : times).push_back((served.served_ns[i] - served.begun_ns[i]) / kSloMs);
        (is_later ? later_queued : queued).push_back((served.served_ns[i] - one.requests_ns[i]) / kSloMs);
    }
    return {p99_of(times), p99_of(later), p99_of(queued), p99_of(later_queued),
            memory > 0 ? static_cast<double>(gpu.programs.back().blocks) : 0};
}

double training_alone(double memory) {
    VirtualGpu gpu(device(kSloSms));
    gpu.add(training(memory));
    gpu.run(*make_policy("fifo"), kUntil);
    return static_cast<double>(gpu.programs.front().blocks);
}

void print(const char* name, const Outcome& outcome, const Outcome& alone, double training) {
    std::printf("%-14s p99 %.3f, at twice the load %.3f, with queueing %.3f and %.3f; training %.3f\n", name,
                outcome.p99 / alone.p99, outcome.later_p99 / alone.later_p99, outcome.queued / alone.queued,
                outcome.later_queued / alone.later_queued, outcome.training / training);
}

}  // namespace

TEST_CASE(
    "slo: a slowdown is kept in virtual time, also when the load doubles, and a training has more than "
    "under priority",
    "[policy]") {
    for (const double memory : {0.15, 0.3, 0.6}) {
        const double whole = training_alone(memory);
        const Outcome alone = run("fifo", {}, 0.3, 0), fifo = run("fifo", {}, 0.3, memory),
                      priority = run("priority", {}, 0.3, memory);
        std::printf("memory %.2f\n", memory);
        print("fifo", fifo, alone, whole);
        print("priority", priority, alone, whole);
        for (const double slowdown : {1.1, 1.25}) {
            const Outcome slo = run("slo", {.slowdown = slowdown}, 0.3, memory);
            print(slowdown == 1.1 ? "slo 1.1" : "slo 1.25", slo, alone, whole);
            CHECK(slo.p99 <= slowdown * std::max(alone.p99, priority.p99));
            CHECK(slo.later_p99 <= slowdown * std::max(alone.later_p99, priority.later_p99));
            CHECK(slo.training > priority.training);
            CHECK(slo.training > 0.55 * whole);
        }
    }
}

TEST_CASE("slo: a p99 is kept in virtual time, also when the load doubles", "[policy]") {
    const double whole = training_alone(0.3);
    const Outcome alone = run("fifo", {}, 0.3, 0), priority = run("priority", {}, 0.3, 0.3);
    const Outcome tight = run("slo", {.p99 = 2600us}, 0.3, 0.3), loose = run("slo", {.p99 = 5ms}, 0.3, 0.3);
    print("slo 2.6 ms", tight, alone, whole);
    print("slo 5 ms", loose, alone, whole);
    CHECK(tight.p99 <= 2.6);
    CHECK(tight.later_p99 <= 2.6);
    CHECK(loose.p99 <= 5);
    CHECK(loose.later_p99 <= 5);
    CHECK(tight.training > priority.training);
    CHECK(loose.training >= tight.training);
}

}  // namespace smt::tests
