// FLEP, 5.2.2.
#include "tests/policy/snapshots.h"

using namespace smt::tests;

namespace {

const FairKnobs kStopsOnly{.resume = 0us, .short_kernel = 0us};

Kernel weighted(uint64_t id, double weight, std::chrono::microseconds preemption) {
    Kernel made = kernel(id, 100000);
    made.weight = weight;
    Profile profile;
    profile.preemption = preemption;
    made.profile = std::make_shared<Profile>(profile);
    return made;
}

}  // namespace

TEST_CASE("fair: epochs of T times the weight, with the smallest T that keeps to the overhead", "[policy]") {
    struct Row {
        double max_overhead, w1, w2;
        std::chrono::microseconds o1, o2;
        Duration first, second, resume = 0us;
    };
    const Row rows[] = {
        {0.1, 1, 1, 100us, 100us, 1ms, 1ms},  // T = 200 us / (0.1 * 2)
        {0.1, 2, 1, 150us, 150us, 2ms, 1ms},  // T = 300 us / (0.1 * 3)
        {0.05, 2, 1, 150us, 150us, 4ms, 2ms},    {0.1, 1, 3, 300us, 100us, 1ms, 3ms},
        {0.1, 1, 1, 0us, 0us, 100us, 100us},  // no shorter than that
        {0.1, 1, 1, 90us, 90us, 1ms, 1ms, 10us},
    };
    for (const Row& row : rows) {
        const auto policy = make_fair({.max_overhead = row.max_overhead, .resume = row.resume});
        const Kernel a = weighted(1, row.w1, row.o1), b = weighted(2, row.w2, row.o2);
        const Decision first = policy->decide({device(4), {a, b}}, kBegin);
        CHECK(said(first) == Said{{1, "run"}, {2, "wait"}});
        REQUIRE(first.again);
        CHECK(*first.again == row.first);
        // In between nothing changes.
        const Decision within = policy->decide({device(4), {a, waiting(b)}}, kBegin + row.first / 2);
        CHECK(said(within).empty());
        CHECK(*within.again == row.first - row.first / 2);
        const Decision second = policy->decide({device(4), {a, waiting(b)}}, kBegin + row.first);
        CHECK(said(second) == Said{{1, "wait"}, {2, "run"}});
        CHECK(*second.again == row.second);
        policy->decide({device(4), {waiting(a), b}}, kBegin + row.first);  // it stops at once
        CHECK(said(policy->decide({device(4), {waiting(a), b}}, kBegin + row.first + row.second)) ==
              Said{{1, "run"}, {2, "wait"}});
    }
}

TEST_CASE("fair: a tenant alone just runs", "[policy]") {
    const auto policy = make_fair(kStopsOnly);
    const Kernel a = weighted(1, 1, 100us);
    for (const Duration at : {Duration(0ms), Duration(1ms), Duration(50ms)}) {
        const Decision decision = policy->decide({device(4), {a}}, kBegin + at);
        CHECK_FALSE(decision.again);
        CHECK(said(decision).count(1) == (at == 0ms));
    }
}

TEST_CASE("fair: a turn is the tenant's, however many streams it has", "[policy]") {
    const auto policy = make_fair(kStopsOnly);
    Kernel a = weighted(1, 1, 100us), b = weighted(2, 1, 60us), c = weighted(3, 1, 100us);
    b.tenant = a.tenant;
    const Decision decision = policy->decide({device(4), {a, b, c}}, kBegin);
    CHECK(said(decision) == Said{{1, "run"}, {2, "run"}, {3, "wait"}});
    CHECK(*decision.again == 1ms);  // the larger O of two that stop together
}

TEST_CASE("fair: a gap in a turn is filled by turns of others, then waited for; a longer one ends it",
          "[policy]") {
    const auto policy = make_fair(kStopsOnly);
    const Kernel a = weighted(1, 1, 100us), b = weighted(2, 1, 100us);  // turns of 1 ms
    const auto decide = [&](std::vector<Kernel> kernels, Duration at) {
        return policy->decide({device(4), std::move(kernels)}, kBegin + at);
    };
    decide({a, waiting(b)}, 0us);
    const Decision gap = decide({waiting(b)}, 100us);
    CHECK(said(gap) == Said{{2, "run"}});
    // It has its turn in one piece, as it has no gap.
    CHECK(*decide({waiting(a), b}, 150us).again == 950us);
    CHECK(said(decide({waiting(a), b}, 1100us)) == Said{{1, "run"}, {2, "wait"}});
    decide({a, waiting(b)}, 1100us);                         // it stops at once
    CHECK(*decide({a, waiting(b)}, 1200us).again == 800us);  // 900 us were left
    // The other one's turn is used up, so it waits.
    const Decision second = decide({waiting(b)}, 1300us);
    CHECK(second.assignments.empty());
    CHECK(*second.again == 200us);
    CHECK(said(decide({waiting(a), waiting(b)}, 1400us)) == Said{{1, "run"}});
    CHECK(decide({waiting(b)}, 1600us).assignments.empty());  // it has worked until now
    CHECK(decide({waiting(b)}, 1799us).assignments.empty());
    const Decision over = decide({waiting(b)}, 1800us);
    CHECK(said(over) == Said{{2, "run"}});
    CHECK_FALSE(over.again);
}

TEST_CASE("fair: gaps are part of a turn where no other fills them", "[policy]") {
    const auto policy = make_fair(kStopsOnly);
    const Kernel a = weighted(1, 2, 100us), b = weighted(2, 1, 100us);  // T is 667 us
    const auto decide = [&](std::vector<Kernel> kernels, Duration at) {
        return policy->decide({device(4), std::move(kernels)}, kBegin + at);
    };
    decide({a, waiting(b)}, 0us);
    decide({waiting(b)}, 500us);
    decide({waiting(a), b}, 600us);
    CHECK(said(decide({waiting(a), b}, 1167us)) == Said{{1, "run"}, {2, "wait"}});  // 833 us are left
    decide({a, waiting(b)}, 1167us);
    decide({waiting(b)}, 1667us);
    CHECK(decide({waiting(a), waiting(b)}, 1767us).again);
    CHECK(said(decide({a, waiting(b)}, 2001us)) == Said{{1, "wait"}, {2, "run"}});
}

TEST_CASE("fair: with no gap at all a turn lasts while there is work", "[policy]") {
    const auto policy = make_fair({.resume = 0us, .idle_grace = Duration::zero()});
    const Kernel one = kernel(1, 1000), two = kernel(2, 1000);
    CHECK(said(policy->decide({device(4), {one, two}}, kBegin)) == Said{{1, "run"}, {2, "wait"}});
    CHECK(said(policy->decide({device(4), {one, waiting(two)}}, kBegin + 1us)).empty());
    CHECK(said(policy->decide({device(4), {waiting(two)}}, kBegin + 2us)) == Said{{2, "run"}});
}

TEST_CASE("fair: a tenant that runs on into another's turn pays with its next one, and that one is longer",
          "[policy]") {
    const auto policy = make_fair(kStopsOnly);
    const Kernel a = weighted(1, 1, 100us), b = weighted(2, 1, 100us);  // turns of 1 ms
    Kernel stopping = a;
    stopping.state = Kernel::State::kStopping;
    CHECK(*policy->decide({device(4), {a, waiting(b)}}, kBegin).again == 1ms);
    CHECK(*policy->decide({device(4), {a, waiting(b)}}, kBegin + 1ms).again == 1ms);
    policy->decide({device(4), {stopping, b}}, kBegin + 1100us);
    CHECK(*policy->decide({device(4), {waiting(a), b}}, kBegin + 1300us).again == 1ms);  // 300 us late
    CHECK(*policy->decide({device(4), {waiting(a), b}}, kBegin + 2ms).again == 300us);
    CHECK(*policy->decide({device(4), {waiting(a), b}}, kBegin + 2300us).again == 700us);
    policy->decide({device(4), {a, waiting(b)}}, kBegin + 2300us);  // b has stopped at once, and owes nothing
    CHECK(*policy->decide({device(4), {a, waiting(b)}}, kBegin + 3ms).again == 1ms);
}

TEST_CASE("fair: a small share is long enough for the others to leave", "[policy]") {
    const auto policy = make_fair(kStopsOnly);
    const Kernel large = weighted(1, 1, 100us), small = weighted(2, 0.01, 50us);
    const Decision first = policy->decide({device(4), {large, waiting(small)}}, kBegin);
    CHECK(*first.again == 20ms);
    CHECK(*policy->decide({device(4), {large, waiting(small)}}, kBegin + 20ms).again ==
          200us);  // the longest stop and 100 us
}

TEST_CASE("fair: a tenant that runs on through another's whole turn pays for all of it", "[policy]") {
    const auto policy = make_fair(kStopsOnly);
    const Kernel a = weighted(1, 1, 100us), b = weighted(2, 1, 100us);  // turns of 1 ms
    Kernel stopping = a;
    stopping.state = Kernel::State::kStopping;
    policy->decide({device(4), {a, waiting(b)}}, kBegin);
    policy->decide({device(4), {a, waiting(b)}}, kBegin + 1ms);
    CHECK(*policy->decide({device(4), {stopping, b}}, kBegin + 2ms).again ==
          125us);  // the least part of its turn
}

TEST_CASE("fair: rounds go on where they were when tenants come and go", "[policy]") {
    const auto policy = make_fair(kStopsOnly);
    const Kernel a = weighted(1, 1, 100us), b = weighted(2, 1, 100us), c = weighted(3, 1, 100us);
    const auto turn = [&](std::vector<Kernel> kernels, Duration at) {
        for (Kernel& each : kernels) each = waiting(each);
        const Said all = said(policy->decide({device(4), std::move(kernels)}, kBegin + at));
        return all.size() == 1 ? all.begin()->first : 0;
    };
    CHECK(turn({a, b, c}, 0ms) == 1);
    CHECK(turn({a, b, c}, 1ms) == 2);
    CHECK(turn({b, c}, 1500us) == 2);
    CHECK(turn({a, b, c}, 2ms) == 3);  // not a, which has just come
    CHECK(turn({a, b, c}, 3ms) == 1);
    CHECK(turn({a, c}, 4ms) == 3);
    CHECK(turn({a, c}, 5ms) == 1);
}

TEST_CASE("fair: unmanaged work runs in others' turns, too", "[policy]") {
    Kernel unmanaged = kernel(2, 0);
    unmanaged.managed = false;
    CHECK(said(make_fair(kStopsOnly)->decide({device(4), {weighted(1, 1, 100us), unmanaged}}, kBegin)) ==
          Said{{1, "run"}});
    CHECK(said(make_fair(kStopsOnly)
                   ->decide({device(4), {weighted(1, 1, 100us), waiting(unmanaged)}}, kBegin)) ==
          Said{{1, "run"}, {2, "run"}});
}
