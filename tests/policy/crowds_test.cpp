// Policies with more tenants than a GPU has room for: the same decisions as with few.
#include <numeric>

#include "runtime/schedule/lookup.h"
#include "runtime/schedule/policies/behind.h"
#include "tests/policy/modelled.h"

using namespace smt::tests;

namespace {

// As it is defined, one tenant after the other.
double behind(const std::vector<std::pair<double, double>>& tenants, double time) {
    double all = 0;
    for (const auto& [other, weight] : tenants)
        if (other < time) all += (time - other) * weight;
    return all;
}

}  // namespace

TEST_CASE("crowds: how much others are behind is what a loop over them says", "[policy]") {
    std::vector<std::pair<double, double>> tenants;
    for (int i = 0; i < 300; ++i) tenants.emplace_back(1e12 + i * 7919 % 1000 * 1e3, 1 + i % 3 * 0.5);
    Behind sums;
    for (const auto& [time, weight] : tenants) sums.add(time, weight);
    sums.sum();
    for (const auto& [time, weight] : tenants) {
        CAPTURE(time);
        CHECK(sums.of(time) == Approx(behind(tenants, time)));
    }
    CHECK(sums.of(1e12) == 0);  // exactly: none is behind
    CHECK(sums.weights() == Approx(450));
    sums.clear();
    sums.add(10, 1), sums.add(30, 2), sums.add(60, 1);
    sums.sum();
    CHECK(sums.of(60) == Approx(110));
    sums.clear();
    sums.sum();
    CHECK(sums.of(60) == 0);
}

TEST_CASE("crowds: an entry is found wherever it is, and the next one is looked for behind it", "[policy]") {
    const std::vector<int> entries{10, 11, 12, 13, 14};
    int looks = 0;
    const auto is = [&](int wanted) { return [&, wanted](int each) { return ++looks, each == wanted; }; };
    size_t next = 0;
    CHECK(find_from(entries, next, is(12)) == 2);
    CHECK(next == 3);
    looks = 0;
    CHECK(find_from(entries, next, is(14)) == 4);  // not from the beginning
    CHECK(looks == 2);
    CHECK(find_from(entries, next, is(10)) == 0);
    CHECK(find_from(entries, next, is(99)) == entries.size());
    CHECK(next == 1);
    next = 99;
    CHECK(find_from(entries, next, is(13)) == 3);
    CHECK(find_from(std::vector<int>{}, next, is(13)) == 0);
    size_t near = 0;
    CHECK(find_near(entries, near, is(13)) == 3);
    looks = 0;
    CHECK(find_near(entries, near, is(13)) == 3);
    CHECK(looks == 1);
    CHECK(find_near(entries, near, is(99)) == entries.size());
    CHECK(near == 3);
}

// The pairs that slice compares are those of kinds of kernels. The tenants that came first are the pair.
TEST_CASE("crowds: slice pairs the first tenants of the two kinds that gain most", "[policy]") {
    std::vector<Kernel> kernels;
    for (uint64_t id = 1; id <= 90; ++id)
        kernels.push_back(profiled(id, id < 40 ? kComputes : id < 60 ? kBetween : kLoads));
    CHECK(chosen(*make_slice(), modelled(132), kernels) == Ids{1, 60});
}

TEST_CASE("crowds: the kernel that has waited too long is in the pair, whichever of its kind it is",
          "[policy]") {
    std::vector<Kernel> kernels;
    for (uint64_t id = 1; id <= 40; ++id) kernels.push_back(profiled(id, id % 2 ? kComputes : kLoads));
    const auto policy = make_slice();
    for (Kernel& each : kernels) each.since = kBegin;
    kernels[34].since = kBegin - 10s;
    const Ids runs = chosen(*policy, modelled(132), kernels);
    REQUIRE(runs.size() == 2);
    CHECK(std::ranges::count(runs, 35u) == 1);
    CHECK((runs[0] == 35 ? runs[1] : runs[0]) % 2 == 0);  // beside one of the other kind
}

// Some run and some wait, as with sixteen: of two hundred the tenants with the highest priority.
TEST_CASE("crowds: priority stops all that are less urgent, and says so once", "[policy]") {
    const auto policy = make_priority_whole();
    Snapshot snapshot{device(132), {}};
    for (uint64_t id = 1; id <= 200; ++id) {
        snapshot.kernels.push_back(kernel(id, 1000));
        snapshot.kernels.back().priority = id % 5 == 0 ? 1 : 0;
    }
    const Said first = said(policy->decide(snapshot, kBegin));
    CHECK(first.size() == 160);
    for (Kernel& each : snapshot.kernels)
        if (first.contains(each.id)) each = waiting(each);
    CHECK(said(policy->decide(snapshot, kBegin + 1ms)).empty());
    std::erase_if(snapshot.kernels, [](const Kernel& each) { return each.priority == 1; });
    policy->decide(snapshot, kBegin + 2ms);
    CHECK(said(policy->decide(snapshot, kBegin + 1s)).size() == 160);
}
