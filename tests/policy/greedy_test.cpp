// Adaptive Simultaneous Multi-tenancy, 3.2 to 3.7.
#include "tests/policy/snapshots.h"

using namespace smt::tests;

namespace {

// Times by CTAs, from 1 on, of a launch of `blocks` blocks.
std::shared_ptr<const Profile> profile(uint64_t blocks, const std::vector<double>& us) {
    Profile made;
    made.blocks = blocks;
    for (size_t i = 0; i < us.size(); ++i)
        made.configurations.push_back({static_cast<int>(i) + 1, us[i] * 1000});
    made.configurations = models::prune(made.configurations);
    return std::make_shared<Profile>(made);
}

Kernel profiled(uint64_t id, const Resources& cta, const std::vector<double>& us) {
    Kernel made = kernel(id, 1000, cta);
    made.profile = profile(1000, us);
    return made;
}

const Resources kSixth = nth_of(kSm, 6);
const std::vector<double> kLinear{600, 300, 200, 150, 120, 100}, kToFive{600, 300, 200, 150, 120, 120};

}  // namespace

TEST_CASE("greedy: figure 6, five CTAs, then three and three, then growth in the tail of the other",
          "[policy]") {
    const auto policy = make_greedy();
    Kernel a = profiled(1, kSixth, kToFive), b = profiled(2, kSixth, kToFive);
    CHECK(said(policy->decide({device(15), {a}}, kBegin)) == Said{{1, "run 5"}});  // step 1
    a.blocks_done = 100;
    CHECK(said(policy->decide({device(15), {a, b}}, kBegin)) == Said{{1, "run 3"}, {2, "run 3"}});  // 2 to 4
    a.blocks_done = 500, b.blocks_done = 400;
    CHECK(said(policy->decide({device(15), {a, b}}, kBegin)).empty());  // nothing has happened
    b.blocks_done = 990, b.last_taken = true;
    CHECK(said(policy->decide({device(15), {a, b}}, kBegin)) == Said{{1, "run 5"}});  // 5 and 6
    CHECK(said(policy->decide({device(15), {a}}, kBegin)).empty());  // its end brings no more
    a.last_taken = true;
    CHECK(said(policy->decide({device(15), {a}}, kBegin)).empty());  // 7
}

TEST_CASE("greedy: the kernel with most left grows, by equation 1", "[policy]") {
    struct Row {
        uint64_t done_of_first;
        std::vector<double> first, second;
        Said expected;
    };
    const Row rows[] = {
        {0, kLinear, kLinear, {{1, "run 3"}, {2, "run 3"}}},
        {600, kLinear, kLinear, {{1, "run 2"}, {2, "run 4"}}},  // 240/c and 600/c
        {900, kLinear, kLinear, {{1, "run 1"}, {2, "run 5"}}},
        {0, {600}, kLinear, {{1, "run 1"}, {2, "run 5"}}},  // the longest cannot be helped
        {0, {600, 590, 580, 570}, kLinear, {{1, "run 4"}, {2, "run 2"}}},
        {0, {600, 600, 600, 600}, kLinear, {{1, "run 1"}, {2, "run 5"}}},  // pruned to one configuration
        {0, {60, 30, 20}, {600, 590, 580}, {{1, "run 3"}, {2, "run 3"}}},  // all it can use
    };
    for (const Row& row : rows) {
        Kernel a = profiled(1, kSixth, row.first), b = profiled(2, kSixth, row.second);
        a.blocks_done = row.done_of_first;
        CHECK(said(make_greedy()->decide({device(15), {a, b}}, kBegin)) == row.expected);
    }
}

TEST_CASE("greedy: a step to a configuration that does not fit is taken back", "[policy]") {
    // 1, 2 and 6 CTAs are worth it; from 2 to 6 there is no room beside another.
    Kernel a = profiled(1, kSixth, {900, 800, 900, 900, 900, 100}),
           b = profiled(2, kSixth, {500, 400, 300, 200});
    CHECK(said(make_greedy()->decide({device(15), {a, b}}, kBegin)) == Said{{1, "run 2"}, {2, "run 4"}});
    CHECK(said(make_greedy()->decide({device(15), {a}}, kBegin)) == Said{{1, "run 6"}});
}

TEST_CASE("greedy: each resource of an SM counts", "[policy]") {
    const Resources small{32, 512, 1024, 1, 1};
    struct Row {
        const char* scarce;
        Resources cta, sm;
    };
    const Row rows[] = {
        {"threads", {512, 512, 1024, 1, 1}, kSm},          {"registers", {32, 16384, 1024, 1, 1}, kSm},
        {"shared memory", {32, 512, 57 << 10, 1, 1}, kSm}, {"warps", {32, 512, 1024, 16, 1}, kSm},
        {"CTAs", small, {2048, 65536, 228 << 10, 64, 4}},
    };
    for (const Row& row : rows) {
        INFO(row.scarce);
        CHECK(said(make_greedy()->decide(
                  {device(15, row.sm), {kernel(1, 1000, row.cta), kernel(2, 1000, row.cta)}}, kBegin)) ==
              Said{{1, "run 2"}, {2, "run 2"}});
    }
}

TEST_CASE("greedy: of more kernels than fit those that came first run, and the others have their turn",
          "[policy]") {
    const Resources half = nth_of(kSm, 2);
    const auto policy = make_greedy({.aging = {.starvation_timeout = 10ms, .boost = 5ms}});
    const Kernel one = kernel(1, 9, half), two = kernel(2, 9, half), third = waiting(kernel(3, 9, half));
    CHECK(said(policy->decide({device(15), {one, two}}, kBegin)) == Said{{1, "run 1"}, {2, "run 1"}});
    const Decision later = policy->decide({device(15), {third, one, two}}, kBegin);
    CHECK(said(later).empty());  // it waits already
    REQUIRE(later.again);
    CHECK(*later.again == 10ms);
    CHECK(said(policy->decide({device(15), {third, one, two}}, kBegin + 10ms)) ==
          Said{{2, "wait"}, {3, "run 1"}});
    CHECK(said(policy->decide({device(15), {kernel(3, 9, half), one, waiting(two, kBegin + 10ms)}},
                              kBegin + 15ms))
              .empty());
    CHECK(said(policy->decide({device(15), {kernel(3, 9, half), one, waiting(two, kBegin + 10ms)}},
                              kBegin + 20ms)) == Said{{1, "wait"}, {2, "run 1"}});
    // Room, and every kernel has some.
    CHECK(said(policy->decide({device(15), {kernel(3, 9, half), waiting(one, kBegin + 20ms)}},
                              kBegin + 21ms)) == Said{{1, "run 1"}});
}

TEST_CASE("greedy: one that would not even fit alone runs, and does not wait for ever", "[policy]") {
    Kernel huge = kernel(1, 9, nth_of(kSm, 1));
    huge.cta.shared_bytes += 1;
    CHECK(said(make_greedy()->decide({device(15), {huge}}, kBegin)) == Said{{1, "run 1"}});
}

TEST_CASE("greedy: a profile that does not begin with one CTA is none", "[policy]") {
    Kernel a = kernel(1, 15000, kSixth), b = kernel(2, 15000, kSixth);
    Profile made;
    made.blocks = 15000;
    made.configurations = {{5, 1e6}, {6, 0.9e6}};
    a.profile = std::make_shared<Profile>(made);
    a.predicted = b.predicted = 1ms;
    CHECK(said(make_greedy()->decide({device(15), {a, b}}, kBegin)) == Said{{1, "run 3"}, {2, "run 3"}});
}

TEST_CASE("greedy: without profiles", "[policy]") {
    const auto decide = [](std::vector<Kernel> kernels, Device of = device(15)) {
        return said(make_greedy()->decide({of, std::move(kernels)}, kBegin));
    };
    Kernel a = kernel(1, 15000, kSixth), b = kernel(2, 15000, kSixth);
    CHECK(decide({a}) == Said{{1, "run 6"}});
    CHECK(decide({a, b}) == Said{{1, "run 3"}, {2, "run 3"}});
    b.blocks = 60000;  // four times the rounds
    CHECK(decide({a, b}) == Said{{1, "run 2"}, {2, "run 4"}});
    b.predicted = 1ms, a.predicted = 1ms;  // a prediction is known
    CHECK(decide({a, b}) == Said{{1, "run 3"}, {2, "run 3"}});
    // Nothing at all is known but how many fit: equal parts.
    Kernel c = kernel(3, 0), d = kernel(4, 0);
    c.ctas_per_sm = d.ctas_per_sm = 4;
    CHECK(decide({c, d}, {132}) == Said{{3, "run 2"}, {4, "run 2"}});
    CHECK(decide({kernel(5, 0), kernel(6, 0)}, {132}) == Said{{5, "run 1"}, {6, "run 1"}});
}

TEST_CASE("greedy: another launch of a stream is an arrival; unmanaged work runs as it is", "[policy]") {
    const auto policy = make_greedy();
    Kernel a = profiled(1, kSixth, kLinear), b = profiled(2, kSixth, kLinear);
    CHECK(said(policy->decide({device(15), {a, b}}, kBegin)) == Said{{1, "run 3"}, {2, "run 3"}});
    a.blocks_done = 900;
    CHECK(said(policy->decide({device(15), {a, b}}, kBegin)).empty());
    b.launch = 1;
    CHECK(said(policy->decide({device(15), {a, b}}, kBegin)) == Said{{1, "run 1"}, {2, "run 5"}});
    Kernel unmanaged = waiting(kernel(3, 0));
    unmanaged.managed = false;
    CHECK(said(policy->decide({device(15), {a, b, unmanaged}}, kBegin)) == Said{{3, "run"}});
    // One that was stopped by others goes on with what it has.
    CHECK(said(policy->decide({device(15), {waiting(a), b}}, kBegin)) == Said{{1, "run 1"}});
    a.state = State::kStopping;
    CHECK(said(policy->decide({device(15), {a, b}}, kBegin)).empty());
}

TEST_CASE("greedy: short kernels run without quotas while all are short", "[policy]") {
    const auto policy = make_greedy({.short_kernel = 250us});
    const auto at = [&](Duration a, std::optional<Duration> b) {
        Kernel first = profiled(1, kSixth, kLinear), second = profiled(2, kSixth, kLinear);
        first.predicted = a, second.predicted = b;
        return said(policy->decide({device(15), {first, second}}, kBegin));
    };
    CHECK(at(100us, 250us).empty());
    CHECK(at(100us, 251us) == Said{{1, "run 3"}, {2, "run 3"}});
    CHECK(at(100us, 100us) == Said{{1, "run"}, {2, "run"}});  // the quotas are lifted
    CHECK(at(100us, 100us).empty());
    CHECK(at(100us, std::nullopt) == Said{{1, "run 3"}, {2, "run 3"}});  // not known: long
}
