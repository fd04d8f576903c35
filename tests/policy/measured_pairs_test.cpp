// slice with pairs that were measured: Kernelet's OPT, 5.1.
#include "tests/policy/modelled.h"

using namespace smt::tests;

namespace {

// As if measured beside others: {other's identity, own CTAs, the other's, rate}.
std::shared_ptr<const Profile> measured(const std::shared_ptr<const Profile>& profile, uint64_t identity,
                                        std::vector<Beside> beside) {
    Profile made = profile ? *profile : Profile{};
    made.identity = identity;
    made.beside = std::move(beside);
    return std::make_shared<Profile>(made);
}

std::string reason(const Decision& decision, uint64_t kernel) {
    for (const Assignment& each : decision.assignments) {
        if (each.kernel == kernel) return each.reason;
    }
    return "";
}

}  // namespace

TEST_CASE("slice: what was measured of a pair goes before what the model says", "[policy]") {
    // CP of 1.3, 1.6 and 1.5 times one's rate: 0.23, 0.375, 0.33.
    const auto computes =
        measured(kComputes, 7, {{9, 2, 6, 0.4}, {9, 3, 5, 0.7}, {9, 6, 2, 0.8}, {8, 4, 4, 1}});
    const auto loads = measured(kLoads, 9, {{7, 2, 6, 0.7}, {7, 5, 3, 0.9}, {7, 6, 2, 0.9}, {7, 4, 4, 1}});
    const std::vector<Kernel> both{profiled(1, computes), profiled(2, loads)};
    const Decision decision = make_slice()->decide({modelled(132), both}, kBegin);
    CHECK(said(decision) == Said{{1, "run 3"}, {2, "run 5"}});
    CHECK(reason(decision, 1) == "3 CTAs an SM beside another, measured to save 38 %");
    CHECK(make_slice()->study({modelled(132), both}) == nullptr);
    // Slices are made of these blocks: 5016 blocks, of 3 and 5 each SM and round.
    CHECK(said(make_slice({.slices = true})->decide({modelled(132), both}, kBegin)) ==
          Said{{1, "run 3, slice 5148"}, {2, "run 5, slice 8580"}});
    // In either order.
    CHECK(said(make_slice()->decide({modelled(132), {both[1], both[0]}}, kBegin)) ==
          Said{{1, "run 3"}, {2, "run 5"}});
    // The model says so where nothing was measured.
    const Decision of_model =
        make_slice()->decide({modelled(132), {profiled(1, kComputes), profiled(2, kLoads)}}, kBegin);
    CHECK(reason(of_model, 1).find(" CTAs an SM beside another, to save ") != std::string::npos);
}

TEST_CASE(
    "slice: a measured pair below its own threshold is none, although the model likes it; and one above it "
    "is, although the model would not",
    "[policy]") {
    REQUIRE(expected(*kComputes, *kLoads).profit > 0.1);
    const auto pair_of = [](double rate) {
        return std::vector<Kernel>{profiled(1, measured(kComputes, 7, {{9, 4, 4, rate}})),
                                   profiled(2, measured(kLoads, 9, {{7, 4, 4, rate}}))};
    };
    CHECK(chosen(*make_slice(), modelled(132), pair_of(0.505)) == Ids{1});  // 0.01
    CHECK(chosen(*make_slice(), modelled(132), pair_of(0.4)) == Ids{1});    // a loss
    CHECK(chosen(*make_slice(), modelled(132), pair_of(0.515)) == Ids{1, 2});
    CHECK(chosen(*make_slice({.least_measured = 0.1}), modelled(132), pair_of(0.515)) == Ids{1});
    CHECK(chosen(*make_slice({.least_profit = 0.9}), modelled(132), pair_of(0.515)) == Ids{1, 2});
    // A kernel that is alone goes on.
    const auto policy = make_slice();
    const std::vector<Kernel> no_pair = pair_of(0.4);
    CHECK(said(policy->decide({modelled(132), no_pair}, kBegin)) == Said{{1, "run"}, {2, "wait"}});
    CHECK(said(policy->decide({modelled(132), {no_pair[0], waiting(no_pair[1])}}, kBegin + 1ms)).empty());
}

TEST_CASE("slice: measured pairs and the model's are held against each other", "[policy]") {
    const double profit =
        models::most_profitable(kModel, model_of(*kComputes), model_of(*kLoads), kFull)->profit;
    const auto with = [&](double cp) {  // 1 and 2 are the model's, 2 and 3 were measured
        const double rate = 1 / (1 - cp) / 2;
        return std::vector<Kernel>{profiled(1, kComputes),
                                   profiled(2, measured(kLoads, 9, {{7, 4, 4, rate}})),
                                   profiled(3, measured(kComputes, 7, {{9, 4, 4, rate}}))};
    };
    CHECK(chosen(*make_slice(), modelled(132), with(profit - 0.02)) == Ids{1, 2});
    CHECK(chosen(*make_slice(), modelled(132), with(profit + 0.02)) == Ids{2, 3});
}

TEST_CASE(
    "slice: of a pair of which one side was measured, or combinations that do not fit, the model decides",
    "[policy]") {
    const Said of_model =
        said(make_slice()->decide({modelled(132), {profiled(1, kComputes), profiled(2, kLoads)}}, kBegin));
    const auto decided = [&](std::vector<Beside> first, std::vector<Beside> second, uint64_t identity = 9) {
        return said(make_slice()->decide({modelled(132),
                                          {profiled(1, measured(kComputes, 7, std::move(first))),
                                           profiled(2, measured(kLoads, identity, std::move(second)))}},
                                         kBegin));
    };
    CHECK(of_model != Said{{1, "run 4"}, {2, "run 4"}});
    CHECK(decided({{9, 4, 4, 1}}, {{7, 4, 4, 1}}) == Said{{1, "run 4"}, {2, "run 4"}});
    CHECK(decided({{9, 4, 4, 1}}, {}) == of_model);
    CHECK(decided({}, {{7, 4, 4, 1}}) == of_model);
    for (const Beside& other : {Beside{7, 3, 4, 1}, {7, 4, 3, 1}})
        CHECK(decided({{9, 4, 4, 1}}, {other}) == of_model);        // another combination
    CHECK(decided({{9, 4, 4, 1}}, {{8, 4, 4, 1}}) == of_model);     // beside another kernel
    CHECK(decided({{0, 4, 4, 1}}, {{7, 4, 4, 1}}, 0) == of_model);  // a kernel without identity has no pair
    CHECK(decided({{9, 4, 5, 1}}, {{7, 5, 4, 1}}) == of_model);     // nine do not fit
    CHECK(decided({{9, 9, 1, 1}}, {{7, 1, 9, 1}}) == of_model);
    CHECK(decided({{9, 0, 4, 1}}, {{7, 4, 0, 1}}) == of_model);
    CHECK(decided({{9, 4, 5, 1}, {9, 2, 2, 0.6}}, {{7, 5, 4, 1}, {7, 2, 2, 0.6}}) ==
          Said{{1, "run 2"}, {2, "run 2"}});
}

TEST_CASE("slice: what was measured is pruned like what the model says", "[policy]") {
    const auto with = [](double pur,
                         double rate) {  // 1 and 2 were measured; so were 2 and 3, which are less alike
        const auto other = mix(0.01, pur, 0.3);
        return std::vector<Kernel>{profiled(1, measured(mix(0.002, 0.3, 0.3), 7, {{9, 4, 4, rate}})),
                                   profiled(2, measured(other, 9, {{7, 4, 4, rate}, {5, 4, 4, 0.6}})),
                                   profiled(3, measured(mix(0.2, 0.1, 0.35), 5, {{9, 4, 4, 0.6}}))};
    };
    CHECK(chosen(*make_slice(), modelled(132), with(0.75, 0.9)) == Ids{1, 2});  // PUR is 0.45 apart
    CHECK(chosen(*make_slice(), modelled(132), with(0.6, 0.9)) == Ids{2, 3});   // 0.3, and MUR is the same
    // alpha_p and alpha_m are halved until something is left; of one mix nothing is.
    std::vector<Kernel> two = with(0.6, 0.9);
    two.pop_back();
    CHECK(chosen(*make_slice(), modelled(132), two) == Ids{1, 2});
    const auto same = measured(kBetween, 7, {{7, 3, 5, 0.7}, {7, 5, 3, 0.8}, {7, 4, 4, 0.5}});
    CHECK(chosen(*make_slice(), modelled(132), {profiled(1, same), profiled(2, same)}) == Ids{1});
}

TEST_CASE("slice: rates that keep a pipe busier than it can be are not gone by", "[policy]") {
    // As two that compute were once measured: both as fast as alone.
    const auto first = mix(0.002, 0.66, 0.3), second = mix(0.002, 0.83, 0.01);
    const auto pair_of = [&](double rate, int ctas) {
        return std::vector<Kernel>{profiled(1, measured(first, 7, {{9, 4, 4, 1.04}, {9, ctas, 5, rate}})),
                                   profiled(2, measured(second, 9, {{7, 4, 4, 1.03}, {7, 5, ctas, rate}}))};
    };
    const Decision decision =
        make_slice()->decide({modelled(132), pair_of(0.7, 3)}, kBegin);  // 1.04 of the issue slots for 1.54
    CHECK(said(decision) == Said{{1, "run 3"}, {2, "run 5"}});
    const Decision none =
        make_slice()->decide({modelled(132), pair_of(0.8, 3)}, kBegin);  // 1.19: the model decides
    for (const uint64_t kernel : {1, 2}) CHECK(reason(none, kernel).find("measured") == std::string::npos);
}

TEST_CASE("slice: what was measured needs no counters", "[policy]") {
    const auto first = measured(nullptr, 7, {{9, 3, 5, 0.7}}),
               second = measured(nullptr, 9, {{7, 5, 3, 0.8}});
    for (const Device& sms : {modelled(132), device(132)})  // nor a model
        CHECK(said(make_slice()->decide({sms, {profiled(1, first), profiled(2, second)}}, kBegin)) ==
              Said{{1, "run 3"}, {2, "run 5"}});
    // Beside those that the model knows they are in no pair, and are not asked of it.
    CHECK(chosen(*make_slice(), modelled(132),
                 {profiled(1, first), profiled(2, kLoads), profiled(3, kComputes)}) == Ids{2, 3});
    CHECK(chosen(*make_slice(), modelled(132),
                 {profiled(1, first), profiled(2, kLoads), profiled(3, second)}) == Ids{1, 3});
}
