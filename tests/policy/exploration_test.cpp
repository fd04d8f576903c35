// What policies try out, as tables. What comes of it through the whole server: tests/simulated/profiles.py.
#include "runtime/schedule/policies/exploration.h"

#include <algorithm>

#include "tests/policy/snapshots.h"

using namespace smt::tests;

namespace {

const Resources kHalfOfSm = nth_of(kSm, 2), kThirdOfSm = nth_of(kSm, 3);
const Device kFour = device(4);

std::shared_ptr<Profile> begun(uint64_t identity) {
    auto made = std::make_shared<Profile>();
    made->identity = identity;
    return made;
}

// 1000 blocks of 50 us.
Kernel strange(uint64_t id, const Resources& cta, std::shared_ptr<const Profile> profile) {
    Kernel made = kernel(id, 1000, cta);
    made.session = static_cast<uint32_t>(id);
    made.profile = std::move(profile);
    made.predicted = 50us * (1000 / (4 * std::max(1, fitting(kSm, cta))));
    return made;
}

Kernel done(Kernel kernel, uint64_t blocks) {
    kernel.blocks_done = blocks;
    return kernel;
}

// Of two kernels that are known with all CTAs on all SMs.
struct Pair {
    std::shared_ptr<Profile> one = begun(11), two = begun(22);
    Pair() {
        one->timed = {{4, 2}};
        two->timed = {{4, 3}};
    }
    void learn(int ctas, int others, double rate, double others_rate, bool learnt = true) {
        one = std::make_shared<Profile>(*one);
        two = std::make_shared<Profile>(*two);
        one->beside.push_back({22, ctas, others, rate, learnt});
        two->beside.push_back({11, others, ctas, others_rate, learnt});
    }
    std::vector<Kernel> kernels() const { return {strange(1, kHalfOfSm, one), strange(2, kThirdOfSm, two)}; }
};

constexpr char kHeld[] = ", slice 1073741824";

}  // namespace

TEST_CASE("compact tries a kernel by itself, when all others are at rest", "[policy]") {
    const auto policy = make_compact();
    const Kernel one = strange(1, kHalfOfSm, begun(11)), two = strange(2, kThirdOfSm, begun(22));
    CHECK(said(policy->decide({kFour, {one, two}}, kBegin)) == Said{{1, "wait"}, {2, "wait"}});
    CHECK(said(policy->decide({kFour, {waiting(one), two}}, kBegin + 20us)) == Said{{2, "wait"}});
    // 4 SMs of 2 CTAs, 8 rounds.
    CHECK(said(policy->decide({kFour, {waiting(one), waiting(two)}}, kBegin + 50us)) ==
          Said{{1, "run 2, slice 64"}});
    CHECK(said(policy->decide({kFour, {done(one, 40), waiting(two)}}, kBegin + 300us)).empty());
    // The slice is over: all go on.
    auto known = begun(11);
    known->timed = {{4, 2}};
    Kernel after = waiting(done(one, 64));
    after.profile = known;
    const Said both = said(policy->decide({kFour, {after, waiting(two)}}, kBegin + 500us));
    CHECK(both.size() == 2);
    CHECK(both.at(1).starts_with("run"));
    CHECK(both.at(2).starts_with("run"));
    // 0.5 ms, so nothing for 9.5; then the same on one SM.
    after.state = State::kRunning;
    CHECK(said(policy->decide({kFour, {after, two}}, kBegin + 9900us)).empty());
    CHECK(said(policy->decide({kFour, {after, two}}, kBegin + 10100us)) == Said{{1, "wait"}, {2, "wait"}});
    CHECK(said(policy->decide({kFour, {waiting(after), waiting(two)}}, kBegin + 10200us)) ==
          Said{{1, "run 2 0 0 0, slice 16"}});
}

TEST_CASE("nothing is tried of a program alone, beside unmanaged work, or of what is known or short",
          "[policy]") {
    const Kernel one = strange(1, kHalfOfSm, begun(11)), two = strange(2, kThirdOfSm, begun(22));
    const auto waits = [](const std::vector<Kernel>& kernels, const CompactKnobs& knobs = {}) {
        const auto policy = make_compact(knobs);
        for (const auto& [id, text] : said(policy->decide({kFour, kernels}, kBegin)))
            if (text == "wait") return true;
        return false;
    };
    REQUIRE(waits({one, two}));
    CHECK_FALSE(waits({one}));
    Kernel of_one = two;
    of_one.session = one.session;
    CHECK_FALSE(waits({one, of_one}));
    Kernel unmanaged = kernel(3, 0);
    unmanaged.managed = false;
    CHECK_FALSE(waits({one, two, unmanaged}));
    Kernel brief = one, other = two;
    brief.predicted = other.predicted = 200us;
    CHECK_FALSE(waits({brief, other}));
    Kernel unpredicted = one;
    unpredicted.predicted.reset();
    CHECK(waits({unpredicted, two}));
    CHECK_FALSE(waits({unpredicted, other}));
    auto measured = begun(11);
    measured->footprint = models::Footprint{2, 1, 1};
    CHECK_FALSE(waits({strange(1, kHalfOfSm, measured), strange(2, kThirdOfSm, measured)}));
    Kernel slow = one, slower = two;
    slow.predicted = slower.predicted = 10s;  // two blocks would keep all waiting for long
    CHECK_FALSE(waits({slow, slower}));
    CHECK_FALSE(waits({one, two}, {.exploration = {.part = 0}}));
}

TEST_CASE("what teaches nothing is tried three times", "[policy]") {
    const auto policy = make_compact();
    std::vector<Kernel> kernels{strange(1, kHalfOfSm, begun(11)), strange(2, kThirdOfSm, begun(22))};
    int trials = 0;
    TimePoint now = kBegin;
    for (int i = 0; i < 200; ++i, now += 300ms) {
        for (const Kernel& each : kernels) REQUIRE(each.profile->timed.empty());
        const Said first = said(policy->decide({kFour, kernels}, now));
        trials += first == Said{{1, "wait"}, {2, "wait"}};
        policy->decide({kFour, {waiting(kernels[0]), waiting(kernels[1])}}, now + 100us);
        policy->decide({kFour, kernels}, now + 20ms);  // it is still at it: too long
    }
    // Kernels, numbers of CTAs (of three: 3 and 1), SMs (all, and one), tries.
    CHECK(trials == 2 * 2 * 2 * 3);
}

TEST_CASE("slice tries each combination of a pair, and then goes by them", "[policy]") {
    const auto policy = make_slice();
    Pair pair;
    auto kernels = pair.kernels();
    TimePoint now = kBegin;
    CHECK(said(policy->decide({kFour, kernels}, now)) ==
          Said{{1, "run 1" + std::string(kHeld)}, {2, "run 1" + std::string(kHeld)}});
    CHECK(said(policy->decide({kFour, kernels}, now + 1ms)).empty());
    pair.learn(1, 1, 0.5, 0.4);
    // No other combination fits: the pair is known, and worth nothing.
    CHECK(said(policy->decide({kFour, pair.kernels()}, now + 2ms)) == Said{{1, "run"}, {2, "wait"}});
}

TEST_CASE("slice runs a pair that was learnt, and says so; measured pairs are not tried", "[policy]") {
    for (const bool learnt : {true, false}) {
        const auto policy = make_slice();
        Pair pair;
        pair.learn(1, 1, 0.8, 0.7, learnt);
        const Decision decision = policy->decide({kFour, pair.kernels()}, kBegin);
        CHECK(said(decision) == Said{{1, "run 1"}, {2, "run 1"}});
        CHECK(decision.assignments[0].reason == std::string("1 CTAs an SM beside another, ") +
                                                    (learnt ? "learnt" : "measured") + " to save 33 %");
    }
}

TEST_CASE("of a pair each kernel is first tried by itself", "[policy]") {
    const auto policy = make_slice();
    Pair pair;
    pair.two->timed.clear();
    CHECK(said(policy->decide({kFour, pair.kernels()}, kBegin)) == Said{{1, "wait"}, {2, "wait"}});
    auto kernels = pair.kernels();
    for (Kernel& each : kernels) each = waiting(each);
    CHECK(said(policy->decide({kFour, kernels}, kBegin + 50us)) == Said{{2, "run 3, slice 96"}});
}

TEST_CASE("a trial of a pair outlives the end of a launch, and not its time", "[policy]") {
    const auto policy = make_slice();
    const Pair pair;
    const auto kernels = pair.kernels();
    policy->decide({kFour, kernels}, kBegin);
    CHECK(said(policy->decide({kFour, {kernels[1]}}, kBegin + 1ms)).empty());
    Kernel next = waiting(kernels[0]);
    next.launch = 7;
    CHECK(said(policy->decide({kFour, {next, kernels[1]}}, kBegin + 2ms)) ==
          Said{{1, "run 1" + std::string(kHeld)}});
    Kernel third = waiting(kernel(3, 1000, kHalfOfSm));
    CHECK(said(policy->decide({kFour, {kernels[0], kernels[1], third}}, kBegin + 3ms)).empty());
    CHECK(said(policy->decide({kFour, kernels}, kBegin + 61ms)) == Said{{1, "run"}, {2, "run"}});
}
