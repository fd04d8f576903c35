// FLEP, 5.2.1, figures 2 and 6.
#include "tests/policy/snapshots.h"

using namespace smt::tests;

namespace {

const Resources kHalf = nth_of(kSm, 2);
const HpfKnobs kPaper{.short_job = 0us};  // no kernel waits where spatial preemption is possible

Kernel urgent(Kernel kernel, int priority) {
    kernel.priority = priority;
    return kernel;
}

Kernel timed(uint64_t id, std::chrono::microseconds remaining, std::chrono::microseconds preemption = 100us) {
    Kernel made = kernel(id, 100000, kHalf);
    made.remaining = remaining;
    Profile profile;
    profile.preemption = preemption;
    made.profile = std::make_shared<Profile>(profile);
    return made;
}

}  // namespace

TEST_CASE("hpf: figure 2 (a), temporal preemption", "[policy]") {
    const auto policy = make_hpf(kPaper);
    const Device two = device(2);
    const Kernel k1 = kernel(1, 1000, kHalf), k2 = urgent(kernel(2, 4, kHalf), 1);
    CHECK(said(policy->decide({two, {k1}}, kBegin)) == Said{{1, "run"}});
    CHECK(said(policy->decide({two, {k1, k2}}, kBegin)) == Said{{1, "wait"}, {2, "run"}});
    CHECK(said(policy->decide({two, {waiting(k1), k2}}, kBegin)).empty());
    CHECK(said(policy->decide({two, {waiting(k1)}}, kBegin)) == Said{{1, "run"}});  // resumed
}

TEST_CASE("hpf: figure 2 (b), one SM is enough for two CTAs", "[policy]") {
    const Device two = device(2);
    const Kernel k1 = kernel(1, 1000, kHalf), k2 = urgent(kernel(2, 2, kHalf), 1);
    const auto spatial = make_hpf(kPaper), temporal = make_hpf({.spatial = false}),
               more = make_hpf({.extra_sms = 1, .short_job = 0us});
    for (const auto& policy : {spatial.get(), temporal.get(), more.get()})
        CHECK(said(policy->decide({two, {k1}}, kBegin)) == Said{{1, "run"}});
    CHECK(said(spatial->decide({two, {k1, k2}}, kBegin)) == Said{{1, "run 0 2"}, {2, "run 2 0"}});
    CHECK(said(temporal->decide({two, {k1, k2}}, kBegin)) == Said{{1, "wait"}, {2, "run"}});
    CHECK(said(more->decide({two, {k1, k2}}, kBegin)) == Said{{1, "wait"}, {2, "run"}});
    // While its blocks are done nothing changes; when it has taken the last one, SM 0 is given back.
    Kernel later = k2;
    later.blocks_done = 1;
    CHECK(said(spatial->decide({two, {k1, later}}, kBegin)).empty());
    later.last_taken = true;
    CHECK(said(spatial->decide({two, {k1, later}}, kBegin)) == Said{{1, "run"}});
}

TEST_CASE("hpf: just enough SMs, and some more", "[policy]") {
    struct Row {
        uint64_t blocks;
        int extra;
        Said expected;
    };
    const Row rows[] = {
        {1, 0, {{1, "run 0 2 2 2"}, {2, "run 2 0 0 0"}}},
        {3, 0, {{1, "run 0 0 2 2"}, {2, "run 2 2 0 0"}}},
        {3, 1, {{1, "run 0 0 0 2"}, {2, "run 2 2 2 0"}}},
        {7, 0, {{1, "wait"}, {2, "run"}}},
        {3, 9, {{1, "wait"}, {2, "run"}}},
        {0, 0, {{1, "wait"}, {2, "run"}}},  // it is unknown how many
    };
    for (const Row& row : rows) {
        const auto policy = make_hpf({.extra_sms = row.extra, .short_job = 0us});
        CHECK(said(policy->decide(
                  {device(4), {kernel(1, 1000, kHalf), urgent(kernel(2, row.blocks, kHalf), 1)}}, kBegin)) ==
              row.expected);
    }
}

TEST_CASE("hpf: a policy that experiments name has more SMs, and no bypass of short jobs", "[policy]") {
    const Device four = device(4);
    const auto policy = make_policy("hpf+1");
    REQUIRE(policy);
    CHECK(policy->name() == "hpf");
    const Kernel k1 = kernel(1, 1000, kHalf), k2 = urgent(kernel(2, 3, kHalf), 1);
    CHECK(said(policy->decide({four, {k1, k2}}, kBegin)) == Said{{1, "run 0 0 0 2"}, {2, "run 2 2 2 0"}});
    CHECK(policy_problem("hpf+0").empty());
    for (const char* nonsense : {"hpf+", "hpf+-1", "hpf+1x", "hpf+70000", "hpf-whole+1"}) {
        CHECK_FALSE(make_policy(nonsense));
        CHECK_FALSE(policy_problem(nonsense).empty());
    }
}

TEST_CASE("hpf: nothing is given up where there is room beside", "[policy]") {
    const Resources fifth = nth_of(kSm, 5);
    Kernel large = timed(1, 5000us, 300us);
    large.cta = fifth;
    large.usual_ctas = 2;  // so three fifths are free
    Kernel small = urgent(kernel(2, 12, fifth), 1);
    small.remaining = 40us;
    struct Row {
        const char* what;
        void (*change)(Kernel& large, Kernel& small);
        Said expected;
    };
    const Said beside{{1, "run"}, {2, "run"}}, spatial{{1, "run 0 0 0 2"}, {2, "run 5 5 5 0"}},
        all{{1, "run 0 0 0 5"}, {2, "run 5 5 5 0"}};
    const Row rows[] = {
        {"it does", [](Kernel&, Kernel&) {}, beside},
        {"a waiting kernel comes beside", [](Kernel& large, Kernel&) { large = waiting(large); }, beside},
        {"a block too many", [](Kernel&, Kernel& small) { small.blocks = 13; }, spatial},
        {"it is not known how many",
         [](Kernel&, Kernel& small) { small.blocks = 0; },
         {{1, "wait"}, {2, "run"}}},
        {"all that fit are at work", [](Kernel& large, Kernel&) { large.usual_ctas = 5; }, all},
        {"or it is not known how many", [](Kernel& large, Kernel&) { large.usual_ctas = 0; }, all},
        {"multiprocessors of its own",
         [](Kernel&, Kernel& small) { small.own_sms = true; },
         {{1, "wait"}, {2, "run"}}},
        {"shared memory that no multiprocessor has set aside",
         [](Kernel&, Kernel& small) { small.cta = {1, 1, kSm.shared_bytes / 5 + 1, 1, 1}; },
         {{1, "run 0 0 0 2"}, {2, "run 4 4 4 0"}}},
    };
    for (const Row& row : rows) {
        INFO(row.what);
        const auto policy = make_hpf(kPaper);
        Kernel first = large, second = small;
        row.change(first, second);
        CHECK(said(policy->decide({device(4), {first, second}}, kBegin)) == row.expected);
    }
    // Only among priorities, and only beside one.
    Kernel equal = small;
    equal.priority = 0;
    CHECK(said(make_hpf(kPaper)->decide({device(4), {large, equal}}, kBegin)) ==
          spatial);  // the shorter one first
    CHECK(said(make_hpf({.spatial = false})->decide({device(4), {large, small}}, kBegin)) ==
          Said{{1, "wait"}, {2, "run"}});
    Kernel third = large;
    third.id = 3;
    CHECK(said(make_hpf(kPaper)->decide({device(4), {large, small, third}}, kBegin))[1] == "run 0 0 0 2");
    CHECK(said(make_hpf(kPaper)->decide({device(4), {large, small, waiting(third)}}, kBegin)) == beside);
    // It stays so until it is over.
    const auto policy = make_hpf(kPaper);
    policy->decide({device(4), {large}}, kBegin);
    policy->decide({device(4), {large, small}}, kBegin);
    large.remaining = 30us;
    CHECK(said(policy->decide({device(4), {large, small}}, kBegin)).empty());
    CHECK(said(policy->decide({device(4), {small}}, kBegin)).empty());
}

TEST_CASE("hpf: a kernel that would wait for a moment only is stopped as a whole, once", "[policy]") {
    Kernel large = timed(1, 5000us), small = urgent(timed(2, 40us), 1);
    small.blocks = 2;
    const Said whole{{1, "wait"}, {2, "run"}}, spatial{{1, "run 0 2"}, {2, "run 2 0"}};
    auto policy = make_hpf();
    const auto after = [&](uint64_t large_launch) {  // the small one's next launch, when the other is there
        large.launch = large_launch;
        ++small.launch;
        policy->decide({device(2), {large}}, kBegin);
        return said(policy->decide({device(2), {large, small}}, kBegin));
    };
    CHECK(after(0) == whole);
    Kernel works = small;
    works.remaining = 20us;
    CHECK(said(policy->decide({device(2), {waiting(large), works}}, kBegin + 199us)).empty());  // it stays so
    CHECK(after(0) == spatial);  // again in the same launch
    CHECK(after(1) == spatial);  // or in the next
    CHECK(after(3) == whole);
    struct Row {
        const char* what;
        void (*change)(Kernel& small);
        Said expected;
    };
    const Row rows[] = {
        {"long enough for a table to pay", [](Kernel& small) { small.remaining = 101us; }, spatial},
        {"its time is not known, but it has few blocks", [](Kernel& small) { small.remaining.reset(); },
         whole},
        {"all SMs anyway", [](Kernel& small) { small.blocks = 4; }, whole},
        {"equals", [](Kernel& small) { small.priority = 0; }, spatial},
    };
    for (const Row& row : rows) {
        INFO(row.what);
        Kernel other = small;
        row.change(other);
        CHECK(said(make_hpf()->decide({device(2), {large, other}}, kBegin)) == row.expected);
    }
    // A kernel that has nothing to stop has no reason to wait, now or later.
    policy = make_hpf();
    CHECK(said(policy->decide({device(2), {waiting(large), small}}, kBegin)) == spatial);
    CHECK(said(policy->decide({device(2), {large, small}}, kBegin)).empty());
    // What took all SMs anyway is no reason to begin with a table.
    policy = make_hpf();
    small.blocks = 4;
    CHECK(after(7) == whole);
    small.blocks = 2;
    CHECK(after(7) == whole);
}

TEST_CASE("hpf: a kernel that takes longer than was thought is not waited for any more, nor the next time",
          "[policy]") {
    Kernel large = timed(1, 5000us), small = urgent(timed(2, 40us), 1);
    small.blocks = 2;
    const Said whole{{1, "wait"}, {2, "run"}}, spatial{{1, "run 0 2"}, {2, "run 2 0"}};
    const auto policy = make_hpf();
    const auto again = [&](const Kernel& large, const Kernel& small, Duration at) {
        return policy->decide({device(2), {large, small}}, kBegin + at).again;
    };
    CHECK(said(policy->decide({device(2), {large, small}}, kBegin)) == whole);
    // It counts while it runs, and the other has stopped.
    Kernel stops = large;
    stops.state = State::kStopping;
    CHECK_FALSE(again(stops, small, 500us));
    CHECK(again(waiting(large), small, 900us) == 200us);         // twice what pays
    CHECK(again(waiting(large), waiting(small), 950us) > 10ms);  // for its turn only
    CHECK(again(waiting(large), small, 1000us) == 200us);
    CHECK(again(waiting(large), small, 1199us) == 1us);
    CHECK(said(policy->decide({device(2), {waiting(large), small}}, kBegin + 1200us)) == spatial);
    large.launch = 5;
    small.launch = 1;
    policy->decide({device(2), {large}}, kBegin + 4ms);
    CHECK(said(policy->decide({device(2), {large, small}}, kBegin + 5ms)) == spatial);
    small.id = 3;
    large.launch = 9;
    policy->decide({device(2), {large}}, kBegin + 6ms);
    CHECK(said(policy->decide({device(2), {large, small}}, kBegin + 6ms)) == Said{{1, "wait"}, {3, "run"}});
}

TEST_CASE("hpf: a kernel that was given a table meanwhile is not stopped as a whole again", "[policy]") {
    Kernel large = timed(1, 5000us);
    const Kernel small = [] {
        Kernel made = urgent(timed(2, 40us), 1);
        made.blocks = 2;
        return made;
    }();
    Kernel equal = small;
    equal.id = 3;
    const Device four = device(4);
    const auto policy = make_hpf();
    CHECK(said(policy->decide({four, {large, small}}, kBegin)) == Said{{1, "wait"}, {2, "run"}});
    CHECK(said(policy->decide({four, {waiting(large), small, equal}}, kBegin + 50us)) ==
          Said{{1, "run 0 0 2 2"}, {2, "run 2 0 0 0"}, {3, "run 0 2 0 0"}});
    CHECK(said(policy->decide({four, {large, small}}, kBegin + 100us))[1] == "run 0 2 2 2");
}

TEST_CASE("hpf: a kernel that comes between is not held against the one that is waited for", "[policy]") {
    Kernel large = timed(1, 5000us), small = urgent(timed(2, 40us), 1), first = urgent(timed(3, 500us), 2);
    small.blocks = 2;
    first.blocks = 4;
    const auto policy = make_hpf();
    CHECK(said(policy->decide({device(2), {large, small}}, kBegin)) == Said{{1, "wait"}, {2, "run"}});
    CHECK(said(policy->decide({device(2), {waiting(large), small, first}}, kBegin + 20us)) ==
          Said{{2, "wait"}, {3, "run"}});
    CHECK(said(policy->decide({device(2), {waiting(large), waiting(small)}}, kBegin + 600us)) ==
          Said{{2, "run"}});
    CHECK(said(policy->decide({device(2), {waiting(large), small}}, kBegin + 640us)).empty());
    large.launch = 5;
    small.launch = 1;
    policy->decide({device(2), {large}}, kBegin + 4ms);
    CHECK(said(policy->decide({device(2), {large, small}}, kBegin + 5ms)) == Said{{1, "wait"}, {2, "run"}});
}

TEST_CASE("hpf: room beside is not enough where the other one leaves no cycles", "[policy]") {
    const Resources fifth = nth_of(kSm, 5);
    Kernel large = timed(1, 5000us, 300us);
    large.cta = fifth;
    large.usual_ctas = 2;
    Kernel small = urgent(kernel(2, 12, fifth), 1);
    small.remaining = 40us;
    const auto policy = make_hpf(kPaper);
    policy->decide({device(4), {large}}, kBegin);
    const Decision first = policy->decide({device(4), {large, small}}, kBegin);
    CHECK(said(first) == Said{{2, "run"}});
    CHECK(first.again == 340us);  // a stop, and its own time
    CHECK(said(policy->decide({device(4), {large, small}}, kBegin + 339us)).empty());
    CHECK(said(policy->decide({device(4), {large, small}}, kBegin + 340us)) ==
          Said{{1, "run 0 0 0 2"}, {2, "run 5 5 5 0"}});
    CHECK(said(policy->decide({device(4), {large}}, kBegin + 400us)) == Said{{1, "run"}});
    small.launch = 1;
    CHECK(said(policy->decide({device(4), {large, small}}, kBegin + 3ms)) ==
          Said{{1, "run 0 0 0 2"}, {2, "run 5 5 5 0"}});
    // Another one is tried. Beside yet another one it was for a part of its time only: the next launch tells.
    small.id = 3;
    CHECK(said(policy->decide({device(4), {large, small}}, kBegin + 6ms)) == Said{{1, "run"}, {3, "run"}});
    large.id = 4;
    const Decision next = policy->decide({device(4), {large, small}}, kBegin + 9ms);
    CHECK(said(next) == Said{{4, "run"}});
    CHECK_FALSE(next.again);
    small.launch = 2;
    CHECK(policy->decide({device(4), {large, small}}, kBegin + 10ms).again == 340us);
}

TEST_CASE("hpf: a guest whose blocks have all begun takes nothing from others", "[policy]") {
    const Resources fifth = nth_of(kSm, 5);
    Kernel large = timed(1, 5000us, 300us);
    large.cta = fifth;
    large.usual_ctas = 2;
    Kernel small = urgent(kernel(2, 12, fifth), 1), other = urgent(kernel(3, 8, fifth), 1);
    small.remaining = other.remaining = 2ms;
    const auto policy = make_hpf(kPaper);
    policy->decide({device(4), {large}}, kBegin);
    policy->decide({device(4), {large, small}}, kBegin);
    small.last_taken = true;
    CHECK(said(policy->decide({device(4), {large, small, other}}, kBegin + 500us)) ==
          Said{{3, "run"}});  // beside the large one, as the first was
}

TEST_CASE(
    "hpf: a guest all of whose blocks have begun is looked after, and what it has is not known: the other "
    "one stops everywhere",
    "[policy]") {
    const Resources fifth = nth_of(kSm, 5);
    Kernel large = timed(1, 5000us, 300us);
    large.cta = fifth;
    large.usual_ctas = 2;
    Kernel small = urgent(waiting(kernel(2, 12, fifth)), 1);
    small.remaining = 40us;
    const auto policy = make_hpf(kPaper);
    policy->decide({device(4), {large}}, kBegin);
    CHECK(said(policy->decide({device(4), {large, small}}, kBegin)) == Said{{2, "run"}});
    // Waiting it cannot be over: it is not held against the two.
    CHECK(policy->decide({device(4), {large, small}}, kBegin + 500us).again == 340us);
    small.state = State::kRunning;
    small.last_taken = true;
    CHECK(policy->decide({device(4), {large, small}}, kBegin + 600us).again == 240us);
    large.launch = 1;  // another launch of the same stream
    CHECK(policy->decide({device(4), {large, small}}, kBegin + 700us).again == 140us);
    CHECK(said(policy->decide({device(4), {large, small}}, kBegin + 840us)) == Said{{1, "wait"}});
    CHECK(said(policy->decide({device(4), {waiting(large)}}, kBegin + 900us)) == Said{{1, "run"}});
}

TEST_CASE("hpf: a tenant with multiprocessors of its own is given all, as it is not known which they are",
          "[policy]") {
    const Kernel k1 = kernel(1, 1000, kHalf);
    Kernel k2 = urgent(kernel(2, 2, kHalf), 1);
    k2.own_sms = true;
    const auto policy = make_hpf();
    policy->decide({device(2), {k1}}, kBegin);
    CHECK(said(policy->decide({device(2), {k1, k2}}, kBegin)) == Said{{1, "wait"}, {2, "run"}});
}

TEST_CASE("hpf: equals have their turns also beside a more urgent kernel that leaves room", "[policy]") {
    const Resources fifth = nth_of(kSm, 5);
    Kernel large = timed(1, 5000us);
    large.cta = fifth;
    large.usual_ctas = 2;
    Kernel small = urgent(kernel(2, 12, fifth), 1), other = waiting(timed(3, 50'000us));
    other.cta = fifth;
    other.usual_ctas = 2;
    const auto policy = make_hpf({.short_job = 0us, .aging = {.starvation_timeout = 10ms, .boost = 5ms}});
    policy->decide({device(4), {large, other}}, kBegin);
    CHECK(said(policy->decide({device(4), {large, small, other}}, kBegin)).count(3) == 0);
    CHECK(said(policy->decide({device(4), {large, small, other}}, kBegin + 10ms)).count(3) == 1);
}

TEST_CASE("hpf: a kernel beside another is stopped by equals only if that pays", "[policy]") {
    const Resources fifth = nth_of(kSm, 5);
    Kernel large = timed(1, 5000us, 300us), small = urgent(timed(2, 200us, 100us), 1),
           equal = urgent(timed(3, 150us), 1);
    for (Kernel* each : {&large, &small, &equal}) each->cta = fifth;
    large.usual_ctas = 2;
    small.blocks = equal.blocks = 12;
    const auto policy = make_hpf();
    policy->decide({device(4), {large}}, kBegin);
    CHECK(said(policy->decide({device(4), {large, small}}, kBegin)) == Said{{2, "run"}});
    const Said found =
        said(policy->decide({device(4), {large, small, waiting(equal)}}, kBegin + 10us));  // 200 < 150 + 100
    CHECK(found.at(2) == "run 5 5 5 0");
    CHECK(found.count(3) == 1);
}

TEST_CASE("hpf: among equals the shortest, if that pays for the stop", "[policy]") {
    struct Row {
        std::chrono::microseconds runs, comes, overhead;
        bool preempted;
    };
    const Row rows[] = {{1000us, 100us, 100us, true},  {1000us, 899us, 100us, true},
                        {1000us, 900us, 100us, false}, {1000us, 901us, 100us, false},
                        {1000us, 100us, 900us, false}, {1000us, 100us, 0us, true},
                        {1000us, 2000us, 0us, false},  {1000us, 1000us, 0us, false}};
    for (const Row& row : rows) {
        const auto policy = make_hpf();
        const Kernel runs = timed(1, row.runs, row.overhead), comes = timed(2, row.comes, 5000us);
        policy->decide({device(4), {runs}}, kBegin);
        const Said expected = row.preempted ? Said{{1, "wait"}, {2, "run"}} : Said{{2, "wait"}};
        CHECK(said(policy->decide({device(4), {runs, comes}}, kBegin)) == expected);
    }
}

TEST_CASE("hpf: when a kernel ends, the shortest of the highest priority is next", "[policy]") {
    const auto policy = make_hpf();
    const Kernel runs = urgent(timed(1, 500us), 1);
    const std::vector<Kernel> wait{waiting(timed(2, 10us)), waiting(urgent(timed(3, 900us), 1)),
                                   waiting(urgent(timed(4, 800us), 1))};
    CHECK(said(policy->decide({device(4), {runs, wait[0], wait[1], wait[2]}}, kBegin)) == Said{{1, "run"}});
    CHECK(said(policy->decide({device(4), wait}, kBegin)) == Said{{4, "run"}});
    CHECK(said(policy->decide({device(4), {wait[0], wait[1]}}, kBegin)) == Said{{3, "run"}});
    CHECK(said(policy->decide({device(4), {wait[0]}}, kBegin)) == Said{{2, "run"}});
}

TEST_CASE("hpf: the next launch of a stream is not the one that ran", "[policy]") {
    const Kernel other = waiting(timed(2, 450us));
    const auto policy = make_hpf();
    Kernel first = timed(1, 400us);
    CHECK(said(policy->decide({device(4), {first, other}}, kBegin)) == Said{{1, "run"}});
    first.launch = 1;
    first.remaining = 500us;  // longer, but not by a stop's time
    CHECK(said(policy->decide({device(4), {first, other}}, kBegin)) == Said{{1, "wait"}, {2, "run"}});
}

TEST_CASE("hpf: without profiles the number of blocks decides", "[policy]") {
    const auto policy = make_hpf(kPaper);
    Kernel many = kernel(1, 100000, kHalf), few = kernel(2, 9000, kHalf);
    CHECK(said(policy->decide({device(4), {many, few}}, kBegin)) == Said{{1, "wait"}, {2, "run"}});
    many.blocks_done = 99999;
    CHECK(said(policy->decide({device(4), {waiting(many), few}}, kBegin)) ==
          Said{{1, "run 2 0 0 0"}, {2, "run 0 2 2 2"}});  // one block left
}

TEST_CASE("hpf: unmanaged work is neither stopped nor waited for", "[policy]") {
    Kernel unmanaged = urgent(kernel(1, 0), 5);
    unmanaged.managed = false;
    const Kernel managed = kernel(2, 1000, kHalf);
    CHECK(said(make_hpf()->decide({device(4), {unmanaged, managed}}, kBegin)) == Said{{2, "run"}});
    CHECK(said(make_hpf()->decide({device(4), {waiting(unmanaged), managed}}, kBegin)) ==
          Said{{1, "run"}, {2, "run"}});
}
