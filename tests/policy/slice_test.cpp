// Kernelet, 4.1 to 4.4.
#include <fmt/format.h>

#include "runtime/schedule/policies/idle_grace.h"
#include "tests/policy/modelled.h"

using namespace smt::tests;

TEST_CASE("slice-paper: a pair runs with balanced blocks, in slices of that ratio", "[policy]") {
    const models::CoSchedule best = expected(*kComputes, *kLoads);
    REQUIRE(best.profit > 0);
    const int a = best.blocks[0], b = best.blocks[1];
    // 10 us of overhead are 2 % of 5000 blocks of 0.1 us; 5016 is the multiple of 132.
    const uint64_t smallest = 5016;
    const uint64_t rounds = (smallest + 132 * std::min(a, b) - 1) / (132 * std::min(a, b));
    const auto slice = [&](int blocks) {
        return "run " + std::to_string(blocks) + ", slice " + std::to_string(132 * rounds * blocks);
    };
    CHECK(said(make_slice({.slices = true})
                   ->decide({modelled(132), {profiled(1, kComputes), profiled(2, kLoads)}}, kBegin)) ==
          Said{{1, slice(a)}, {2, slice(b)}});
}

TEST_CASE("slice: a pair runs with the most profitable blocks, and is not sliced", "[policy]") {
    const models::CoSchedule best =
        *models::most_profitable(kModel, model_of(*kComputes), model_of(*kLoads), kFull);
    REQUIRE(best.profit > expected(*kComputes, *kLoads).profit);
    const auto run = [&](size_t i) { return "run " + std::to_string(best.blocks[i]); };
    CHECK(said(make_slice()->decide({modelled(132), {profiled(1, kComputes), profiled(2, kLoads)}},
                                    kBegin)) == Said{{1, run(0)}, {2, run(1)}});
}

TEST_CASE("slice-paper: the smallest slice with the overhead allowed", "[policy]") {
    const models::CoSchedule best = expected(*kComputes, *kLoads);
    const uint64_t round = 132 * static_cast<uint64_t>(std::min(best.blocks[0], best.blocks[1]));
    struct Row {
        double overhead;
        std::chrono::microseconds slice_overhead;
        uint64_t smallest;  // blocks, a multiple of the SMs
    };
    const Row rows[] = {
        {0.02, 10us, 5016}, {0.04, 10us, 2508}, {0.02, 1us, 528}, {0.02, 0us, 132}, {0.001, 10us, 100056}};
    for (const Row& row : rows) {
        Profile computes = *kComputes, loads = *kLoads;
        computes.slice_overhead = loads.slice_overhead = row.slice_overhead;
        const auto policy = make_slice({.overhead = row.overhead, .slices = true});
        const Decision decision = policy->decide({modelled(132),
                                                  {profiled(1, std::make_shared<Profile>(computes)),
                                                   profiled(2, std::make_shared<Profile>(loads))}},
                                                 kBegin);
        REQUIRE(decision.assignments.size() == 2);
        const uint64_t slice = std::min(decision.assignments[0].slice, decision.assignments[1].slice);
        CHECK(slice == (row.smallest + round - 1) / round * round);
    }
}

TEST_CASE("slice: alone, none", "[policy]") {
    CHECK(said(make_slice()->decide({modelled(132), {profiled(1, kLoads)}}, kBegin)) == Said{{1, "run"}});
}

TEST_CASE("slice: no pair for a profit that the model may only imagine", "[policy]") {
    const double profit = expected(*kComputes, *kLoads).profit;
    REQUIRE(profit > 0.1);
    const std::vector<Kernel> kernels{profiled(1, kComputes), profiled(2, kLoads), profiled(3, kLoads)};
    CHECK(chosen(*make_slice(), modelled(132), kernels) == Ids{1, 2});
    CHECK(chosen(*make_slice({.least_profit = 0.9}), modelled(132), kernels) == Ids{1});
}

TEST_CASE("slice: the model is told of waits, and of times with fewer CTAs; slice-paper's is not",
          "[policy]") {
    const auto decided = [&](const Profile& loads, const SliceKnobs& knobs) {
        const Decision decision = make_slice(knobs)->decide(
            {modelled(132), {profiled(1, kComputes), profiled(2, std::make_shared<Profile>(loads))}}, kBegin);
        REQUIRE(decision.assignments.size() == 2);
        return decision.assignments[1].reason;
    };
    const auto told = [&](const Profile& loads) {
        models::KernelModel model = model_of(loads);
        if (loads.mix->waits) models::tell(*loads.mix->waits, model);
        model.rates = models::relative_throughput(loads.by_ctas, 8);
        const auto best = *models::most_profitable(kModel, model_of(*kComputes), model, kFull);
        return fmt::format("{} CTAs an SM beside another, to save {:.0f} %", best.blocks[1],
                           best.profit * 100);
    };
    Profile waits = *kLoads, faster = *kLoads;
    waits.mix->waits = models::Waits{.interval = 2, .latency = 150, .requests = 0.05};  // caches answer
    faster.by_ctas = {{1, 400}, {4, 200}, {5, 50}, {6, 100}, {8, 100}};                 // with five CTAs
    REQUIRE(
        (told(waits) != told(*kLoads) && told(faster).starts_with("5 ") && !told(*kLoads).starts_with("5 ")));
    for (const Profile& loads : {*kLoads, waits, faster}) {
        CHECK(decided(loads, {}) == told(loads));
        CHECK(decided(loads, {.slices = true}) == decided(*kLoads, {.slices = true}));
    }
}

TEST_CASE("slice: the pair with the largest profit", "[policy]") {
    const double far = expected(*kComputes, *kLoads).profit, near = expected(*kBetween, *kLoads).profit,
                 other = expected(*kComputes, *kBetween).profit;
    REQUIRE(far > std::max(near, other));
    const auto policy = make_slice();
    const std::vector<Kernel> kernels{profiled(1, kBetween), profiled(2, kLoads), profiled(3, kComputes)};
    CHECK(chosen(*policy, modelled(132), kernels) == Ids{2, 3});
}

TEST_CASE("slice: pairs that are too much alike in both PUR and MUR are left out", "[policy]") {
    // The model sees a profit in all of these; PUR and MUR say otherwise.
    const auto a = mix(0.002, 0.95, 0.50), b = mix(0.2, 0.90, 0.55), c = mix(0.1, 0.20, 0.90);
    REQUIRE(expected(*a, *b).profit > expected(*a, *c).profit);
    const auto policy = make_slice();
    CHECK(chosen(*policy, modelled(132), {profiled(1, a), profiled(2, b), profiled(3, c)}) == Ids{1, 3});
    // All pairs are pruned at first; with halved thresholds one is left.
    CHECK(chosen(*make_slice(), modelled(132), {profiled(1, a), profiled(2, b)}) == Ids{1, 2});
    const auto d = mix(0.2, 0.90, 0.50);  // and in one of the two alone
    CHECK(chosen(*make_slice(), modelled(132), {profiled(1, a), profiled(2, d)}) == Ids{1, 2});
    // Of one mix: no pair. The first runs alone.
    CHECK(chosen(*make_slice(), modelled(132), {profiled(1, a), profiled(2, a)}) == Ids{1});
}

TEST_CASE("slice: of many pairs that were never seen the best one runs", "[policy]") {
    // 66 pairs of much the same kind, of which the last one only is worth it.
    const auto policy = make_slice({.prune = {0, 0}});
    std::vector<Kernel> kernels;
    for (uint64_t id = 1; id <= 11; ++id)
        kernels.push_back(waiting(profiled(id, mix(0.4 + 0.01 * static_cast<double>(id), 0.5, 0.5))));
    kernels.push_back(waiting(profiled(12, kComputes)));
    const auto first = expected(*kernels[0].profile, *kernels[1].profile).profit;
    const auto last = expected(*kernels[10].profile, *kComputes).profit;
    REQUIRE(last > 0.05);
    REQUIRE(first < 0.01);
    const Decision decision = policy->decide({modelled(132), kernels}, kBegin);
    CHECK(said(decision).size() == 2);
    CHECK(said(decision).count(12));
}

TEST_CASE(
    "slice: of more kinds of kernels than are kept apart the last ones are not paired, and studying them "
    "ends",
    "[policy]") {
    constexpr uint64_t kKinds = 130;
    const auto policy = make_slice({.prune = {0, 0}});
    std::vector<Kernel> many;
    for (uint64_t id = 1; id <= kKinds; ++id)
        many.push_back(waiting(profiled(id, mix(0.002 * static_cast<double>(id), 0.5, 0.5))));
    uint64_t studies = 0;
    while (std::unique_ptr<Study> study = policy->study({modelled(132), many})) {
        REQUIRE(++studies < kKinds * kKinds / 2);
        study->run();
        policy->learn(std::move(study));
    }
    CHECK(said(policy->decide({modelled(132), many}, kBegin)).size() == 2);
}

TEST_CASE("slice: a pair stays while both have blocks, whatever else comes", "[policy]") {
    const auto policy = make_slice({.idle_grace = 0us});
    const Kernel loads = profiled(1, kLoads), between = profiled(2, kBetween);
    Kernel computes = profiled(3, kComputes);
    CHECK(chosen(*policy, modelled(132), {loads, between}) == Ids{1, 2});
    CHECK(chosen(*policy, modelled(132), {loads, between, computes}) == Ids{1, 2});
    CHECK(chosen(*policy, modelled(132), {loads, computes}) == Ids{1, 3});  // between has ended
    CHECK(chosen(*policy, modelled(132), {loads, between, computes}) == Ids{1, 3});
    computes.last_taken = true;
    CHECK(chosen(*policy, modelled(132), {loads, between, computes}) == Ids{1, 2});
}

TEST_CASE("slice: a pair waits for a kernel of its own that is launched again", "[policy]") {
    const auto policy = make_slice({.idle_grace = 200us});
    const Device sms = modelled(132);
    const Kernel loads = profiled(1, kLoads), computes = profiled(3, kComputes);
    Kernel between = profiled(2, kBetween), again = computes;
    again.launch = 1;
    CHECK(chosen(*policy, sms, {loads, between, computes}) == Ids{1, 3});
    Kernel ends = computes;
    ends.last_taken = true;  // the other goes on with what it has
    CHECK(chosen(*policy, sms, {loads, between, ends}, kBegin + 1ms) == Ids{1});
    CHECK(chosen(*policy, sms, {loads, between}, kBegin + 2ms) == Ids{1});
    CHECK(*policy->decide({sms, {loads, between}}, kBegin + 2ms + 50us).again == 150us);
    CHECK(chosen(*policy, sms, {loads, between, again}, kBegin + 2ms + 100us) == Ids{1, 3});
    CHECK(chosen(*policy, sms, {loads, between}, kBegin + 3ms) == Ids{1});
    CHECK(chosen(*policy, sms, {loads, between}, kBegin + 3ms + 200us) == Ids{1, 2});  // it did not come
    CHECK(chosen(*policy, sms, {loads, between, computes}, kBegin + 4ms) == Ids{1, 2});
    between.launch = 1;  // the best pair is looked for when one has come again
    CHECK(chosen(*policy, sms, {loads, between, computes}, kBegin + 5ms) == Ids{1, 3});
    CHECK(chosen(*policy, sms, {between}, kBegin + 6ms) == Ids{2});  // no kernel waits for two
}

TEST_CASE("slice: a kernel that runs while both of a pair are gone makes way for them", "[policy]") {
    const auto policy = make_slice({.idle_grace = 200us});
    const Device sms = modelled(132);
    Kernel loads = profiled(1, kLoads), computes = profiled(3, kComputes);
    const Kernel between = profiled(2, kBetween), other = profiled(4, mix(0.015, 0.5, 0.5));  // no pair
    CHECK(chosen(*policy, sms, {loads, between, computes, other}) == Ids{1, 3});
    CHECK(chosen(*policy, sms, {between, other}, kBegin + 1ms) == Ids{2});
    loads.launch = computes.launch = 1;
    CHECK(chosen(*policy, sms, {loads, between, other}, kBegin + 1100us) == Ids{1, 2});
    CHECK(chosen(*policy, sms, {loads, between, computes, other}, kBegin + 1150us) == Ids{1, 3});
    CHECK(chosen(*policy, sms, {between, other}, kBegin + 2ms) == Ids{2});
    loads.launch = computes.launch = 2;
    CHECK(chosen(*policy, sms, {loads, between, other}, kBegin + 2100us) == Ids{1, 2});
    CHECK(chosen(*policy, sms, {loads, between, computes, other}, kBegin + 2300us) == Ids{1, 2});  // too late
}

TEST_CASE(
    "slice: a kernel that has waited too long has a turn, and then the best pair goes on, whatever it has "
    "left",
    "[policy]") {
    const auto policy = make_slice({.aging = {.starvation_timeout = 100ms, .boost = 10ms}});
    const Device sms = modelled(132);
    Kernel loads = profiled(1, kLoads), computes = profiled(3, kComputes),
           between = waiting(profiled(2, kBetween), kBegin);
    const auto at = [&](Duration time) {
        return said(policy->decide({sms, {loads, between, computes}}, kBegin + time));
    };
    CHECK(at(0ms).count(2) == 0);
    CHECK(at(99ms).empty());
    const Said turn = at(100ms);
    CHECK(turn.at(2).starts_with("run"));
    Kernel& left = turn.at(1) == "wait" ? loads : computes;
    REQUIRE(turn.at(left.id) == "wait");
    left = waiting(left, kBegin + 100ms);
    between.state = State::kRunning, between.since = kBegin + 100ms;
    CHECK(at(109ms).empty());
    const Said after = at(110ms);
    CHECK(after.at(2) == "wait");
    CHECK(after.at(left.id).starts_with("run"));
}

TEST_CASE("slice: a turn alone ends, too", "[policy]") {
    const auto policy = make_slice({.aging = {.starvation_timeout = 100ms, .boost = 10ms}});
    const Device sms = modelled(132);
    Kernel first = profiled(1, kLoads), second = waiting(profiled(2, kLoads), kBegin);
    const auto at = [&](Duration time) {
        return said(policy->decide({sms, {first, second}}, kBegin + time));
    };
    CHECK(at(0ms) == Said{{1, "run"}});
    CHECK(at(100ms) == Said{{1, "wait"}, {2, "run"}});
    first = waiting(first, kBegin + 100ms), second = profiled(2, kLoads);
    CHECK(at(109ms).empty());
    CHECK(at(110ms) == Said{{1, "run"}, {2, "wait"}});
}

TEST_CASE("slice: a launch that comes too late is waited for the next time", "[policy]") {
    const auto policy = make_slice({.idle_grace = 200us});
    const Device sms = modelled(132);
    const Kernel loads = profiled(1, kLoads);
    Kernel between = profiled(2, kBetween), computes = profiled(3, kComputes);
    CHECK(chosen(*policy, sms, {loads, between, computes}) == Ids{1, 3});
    CHECK(chosen(*policy, sms, {loads, between}, kBegin + 1ms) == Ids{1});
    CHECK(chosen(*policy, sms, {loads, between}, kBegin + 1200us) == Ids{1, 2});
    computes.launch = 1;
    CHECK(chosen(*policy, sms, {loads, between, computes}, kBegin + 1300us) == Ids{1, 2});  // after 300 us
    between.launch = 1;
    CHECK(chosen(*policy, sms, {loads, between, computes}, kBegin + 2ms) == Ids{1, 3});
    CHECK(chosen(*policy, sms, {loads, between}, kBegin + 3ms) == Ids{1});
    CHECK(*policy->decide({sms, {loads, between}}, kBegin + 3ms).again == 600us);
}

TEST_CASE("gaps: twice what a tenant took lately, and no less than is set", "[policy]") {
    IdleGrace<int> gaps(200us);
    CHECK(gaps.of(1) == 200us);
    gaps.gone(1, kBegin);
    gaps.gone(1, kBegin + 100us);
    gaps.works(1, kBegin + 300us);
    CHECK(gaps.of(1) == 600us);
    CHECK(gaps.of(2) == 200us);
    gaps.works(1, kBegin + 400us);  // has worked all the time
    CHECK(gaps.of(1) == 600us);
    gaps.gone(1, kBegin + 1ms);
    gaps.works(1, kBegin + 1ms + 700us);
    CHECK(gaps.of(1) == 800us);  // of 400 us on average
    gaps.gone(1, kBegin + 2ms);
    gaps.works(1, kBegin + 3ms);
    CHECK(gaps.of(1) == 1ms);  // at most
    gaps.gone(1, kBegin + 4ms);
    gaps.works(1, kBegin + 6ms);  // too long to be waited for
    CHECK(gaps.of(1) == 200us);
    IdleGrace<int> none(0us);
    none.gone(1, kBegin);
    none.works(1, kBegin + 300us);
    CHECK(none.of(1) == 0us);
}

TEST_CASE("slice: alone until another kernel comes; pairs without profit are none", "[policy]") {
    const auto policy = make_slice();
    const Kernel first = profiled(7, kLoads), same = profiled(2, kLoads), computes = profiled(3, kComputes);
    CHECK(chosen(*policy, modelled(132), {first}) == Ids{7});
    CHECK(chosen(*policy, modelled(132), {first, same}) == Ids{7});
    CHECK(chosen(*policy, modelled(132), {same, first}) == Ids{7});  // it came first
    CHECK(chosen(*policy, modelled(132), {first, same, computes}).size() == 2);
}

TEST_CASE("slice: a kernel that has waited too long is in the next pair", "[policy]") {
    const auto policy = make_slice({.aging = {.starvation_timeout = 100ms, .boost = 10ms}});
    const Device sms = modelled(132);
    const Kernel loads = profiled(1, kLoads), between = profiled(2, kBetween),
                 computes = profiled(3, kComputes);
    policy->decide({sms, {loads, waiting(between), computes}}, kBegin);
    CHECK(said(policy->decide({sms, {loads, waiting(between), computes}}, kBegin + 99ms)).empty());
    const Decision turn = policy->decide({sms, {loads, waiting(between), computes}}, kBegin + 100ms);
    CHECK(said(turn).count(2));
    CHECK(said(turn).at(2).substr(0, 3) == "run");
    CHECK(*turn.again == 10ms);
    CHECK(said(policy->decide({sms, {loads, between, computes}}, kBegin + 105ms)).count(2) == 0);  // goes on
}

TEST_CASE("slice: without a profile, or a model of the device, kernels run as they are", "[policy]") {
    Kernel unknown = kernel(1, 1000, kEighth);
    const Kernel loads = profiled(2, kLoads), computes = profiled(3, kComputes);
    const Said all =
        said(make_slice()->decide({modelled(132), {unknown, waiting(loads), waiting(computes)}}, kBegin));
    CHECK(all.at(1) == "run");
    CHECK(all.size() == 3);
    CHECK(said(make_slice()->decide({device(132), {waiting(loads), waiting(computes)}}, kBegin)) ==
          Said{{2, "run"}, {3, "run"}});
    unknown.managed = false;
    CHECK(said(make_slice()->decide({modelled(132), {unknown}}, kBegin)).empty());
    CHECK(said(make_slice()->decide({modelled(132), {waiting(unknown)}}, kBegin)) == Said{{1, "run"}});
}
