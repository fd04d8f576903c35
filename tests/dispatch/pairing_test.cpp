// What two programs' streams are told to do while their kernels are measured side by side, and what is
// recorded.
#include "runtime/dispatch/pairing.h"

#include <catch2/catch.hpp>

#include "runtime/profiles/plan.h"

using namespace smt::runtime;
using namespace smt::runtime::dispatch;
using namespace std::chrono_literals;
using schedule::Duration;
using State = schedule::Kernel::State;
using What = Pairing::Want::What;

namespace {

constexpr int kSms = 10;
constexpr Duration kLook = 50us;
const schedule::Resources kSm{2048, 65536, 228 << 10, 64, 32};

std::shared_ptr<profiles::KnownKernel> known(const std::string& symbol) {
    return std::make_shared<profiles::KnownKernel>(symbol, "image",
                                                   profiles::DeviceFacts{"a device", kSms, {}, {}});
}

// A program's stream with one launch after the other of a kernel.
struct Program {
    uint64_t stream;
    std::shared_ptr<profiles::KnownKernel> kernel;
    uint64_t blocks = 100'000;  // of a launch
    double rate = 100;   // blocks a millisecond of each CTA's place, beside the other; three times that alone
    uint32_t parts = 4;  // of it fill a multiprocessor
    int launches = 1'000'000;
    Duration gap{};   // between two
    Duration tail{};  // from when its last block has been taken until it is over
    bool stops = true;
    bool complete = true;  // all its CTAs find a place

    bool works = true, passes_through = false;
    State state = State::kWaiting;
    uint64_t launch = 1;
    double done = 0;
    int ctas = 0;  // that it keeps to
    schedule::TimePoint back{}, over{};
    std::vector<int> kept = {};  // each time that it began to

    Seat seat() const {
        if (!works) return {};
        schedule::Kernel seen;
        seen.id = stream;
        seen.session = static_cast<uint32_t>(stream);
        seen.state = state;
        seen.blocks = blocks;
        seen.blocks_done = static_cast<uint64_t>(done);
        seen.ctas_per_sm = static_cast<int>(parts);
        seen.launch = launch;
        seen.last_taken = done >= static_cast<double>(blocks);
        seen.cta = {kSm.threads / parts, kSm.registers / parts, kSm.shared_bytes / parts, kSm.warps / parts,
                    1};
        return {true, passes_through, complete, seen, kernel, {{256, 1, 1}, blocks}};
    }
    void obey(const Pairing::Want& want) {
        const bool held = want.what == What::kHold;
        if (state == State::kWaiting && want.what != What::kRest) {
            state = State::kRunning;
            passes_through = !held;
            ctas = held ? want.ctas : static_cast<int>(parts);
            if (held) kept.push_back(ctas);
        } else if (state == State::kRunning && stops &&
                   (passes_through ? want.what != What::kPassThrough : !held || want.ctas != ctas)) {
            state = State::kWaiting;
            passes_through = false;
        }
    }
    void run(Duration time, bool alone) {
        if (state != State::kRunning) return;
        done = std::min(static_cast<double>(blocks),
                        done + rate * ctas * kSms * (alone ? 3 : 1) *
                                   std::chrono::duration<double, std::milli>(time).count());
    }
    void end_launches(schedule::TimePoint now) {
        if (works && done < static_cast<double>(blocks)) over = now + tail;
        if (works && done >= static_cast<double>(blocks) && now >= over) {
            works = false, done = 0, back = now + gap;
            ++launch;
            if (--launches == 0) back = schedule::TimePoint::max();
            passes_through = false, state = State::kWaiting;
        }
        if (!works && now >= back) works = true;
    }
};

struct World {
    schedule::TimePoint host{}, now = schedule::TimePoint{} + 1h;
    Pairing pairing{schedule::Device{kSms, kSm}, Pairing::kLeast, [this] { return host; }};
    std::vector<Program> programs = {};
    std::vector<uint64_t> begun = {};  // streams, each time that one began to keep to CTAs

    void run(Duration time) {
        for (const auto until = now + time; now < until; now += kLook) {
            for (Program& each : programs) {
                const Pairing::Want want = pairing.see(each.stream, each.seat(), now);
                const size_t before = each.kept.size();
                if (each.works) each.obey(want);
                if (each.kept.size() > before) begun.push_back(each.stream);
            }
            const auto at_work = std::count_if(programs.begin(), programs.end(), [](const Program& each) {
                return each.works && each.state == State::kRunning && !each.seat().kernel.last_taken;
            });
            for (Program& each : programs) each.run(kLook, at_work == 1);
            for (Program& each : programs) each.end_launches(now);
        }
    }
    std::vector<smt::profiler::Profile> news(size_t program) { return programs[program].kernel->take_news(); }
};

using Sums = std::map<std::pair<int64_t, int64_t>,
                      std::pair<int64_t, double>>;  // by own CTAs and the other's: windows, and blocks a ms
Sums sums_of(const std::vector<smt::profiler::Profile>& news) {
    Sums sums;
    for (const auto& profile : news) {
        for (const auto& [company, time] : profile.beside)
            sums[{company.ctas_per_sm, company.other_ctas_per_sm}] = {
                time.windows, 1e6 * static_cast<double>(time.blocks) / static_cast<double>(time.nanoseconds)};
    }
    return sums;
}

}  // namespace

TEST_CASE("each combination of two kernels is measured, and then everything passes_through", "[pairs]") {
    World world;
    world.programs = {{.stream = 1, .kernel = known("a")},
                      {.stream = 2, .kernel = known("b"), .blocks = 30'000, .rate = 50, .gap = 200us}};
    world.run(2s);
    CHECK((world.programs[0].passes_through && world.programs[0].state == State::kRunning));
    CHECK(world.pairing.summary() == std::string(profiles::kSideBySide) +
                                         "6 windows measured of 1 pairs of kernels; " +
                                         profiles::kNothingMissing);
    const Sums first = sums_of(world.news(0)), second = sums_of(world.news(1));
    REQUIRE(first.size() == 3);
    REQUIRE(second.size() == 3);
    for (int64_t a = 1; a <= 3; ++a) {
        CHECK(first.at({a, 4 - a}).first == Pairing::kWindows);
        CHECK(second.at({4 - a, a}).first == Pairing::kWindows);
        CHECK(first.at({a, 4 - a}).second == Approx(100.0 * static_cast<double>(a) * kSms).epsilon(0.02));
        CHECK(second.at({4 - a, a}).second == Approx(50.0 * static_cast<double>(4 - a) * kSms).epsilon(0.02));
    }
    // Each once before any twice.
    std::vector<int> kept = world.programs[0].kept;
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    CHECK(kept == std::vector<int>{1, 2, 3, 1, 2, 3});
}

TEST_CASE("which launch is the elder takes turns", "[pairs]") {
    World world;
    world.programs = {{.stream = 1, .kernel = known("a"), .parts = 2},
                      {.stream = 2, .kernel = known("b"), .parts = 2}};
    world.run(200ms);
    CHECK(world.begun == std::vector<uint64_t>{1, 2, 2, 1});  // one combination, measured twice
}

TEST_CASE("what earlier servers measured is not measured again", "[pairs]") {
    World world;
    world.programs = {{.stream = 1, .kernel = known("a")}, {.stream = 2, .kernel = known("b")}};
    std::array<smt::profiler::Profile, 2> stored;
    const profiles::Shape shape{{256, 1, 1}, 100'000};
    for (size_t i = 0; i < 2; ++i) {
        stored[i].key = world.programs[i].kernel->key(shape);
        const smt::profiler::Key other = world.programs[1 - i].kernel->key(shape);
        for (int64_t a = 1; a <= 3; ++a)
            stored[i].beside[{other, a, 4 - a}] = {a == 2 && i == 0 ? 1 : 2, 10,
                                                   10};  // of one, one is missing
        world.programs[i].kernel->know({stored[i]});
    }
    world.run(500ms);
    const Sums first = sums_of(world.news(0));
    REQUIRE(first.size() == 1);
    CHECK(first.at({2, 2}).first == 1);
}

TEST_CASE("two instances of one program are a pair, too", "[pairs]") {
    World world;
    const auto kernel = known("a");
    world.programs = {{.stream = 1, .kernel = kernel}, {.stream = 2, .kernel = kernel}};
    world.run(1s);
    const Sums sums = sums_of(world.news(0));
    REQUIRE(sums.size() == 3);
    CHECK(sums.at({1, 3}).first == Pairing::kWindows);
    CHECK(sums.at({2, 2}).first == 2 * Pairing::kWindows);  // one row for both
    CHECK(sums.at({3, 1}).second == Approx(3000).epsilon(0.02));
}

TEST_CASE("launches of a few milliseconds with gaps between them are measured without the gaps", "[pairs]") {
    World world;
    world.programs = {{.stream = 1, .kernel = known("a"), .blocks = 4000, .gap = 500us},
                      {.stream = 2, .kernel = known("b"), .blocks = 5000, .gap = 300us}};
    world.run(4s);
    const Sums first = sums_of(world.news(0));
    REQUIRE(first.size() == 3);
    for (int64_t a = 1; a <= 3; ++a)
        CHECK(first.at({a, 4 - a}).second == Approx(100.0 * static_cast<double>(a) * kSms).epsilon(0.03));
}

TEST_CASE("the end of a launch, in which it has less and less at work, is not counted", "[pairs]") {
    World world;
    world.programs = {{.stream = 1, .kernel = known("a"), .blocks = 9000, .tail = 2ms},
                      {.stream = 2, .kernel = known("b")}};
    world.run(4s);
    for (size_t i = 0; i < 2; ++i) {
        const Sums sums = sums_of(world.news(i));
        REQUIRE(sums.size() == 3);
        for (int64_t a = 1; a <= 3; ++a)
            CHECK(sums.at({a, 4 - a}).second == Approx(100.0 * static_cast<double>(a) * kSms).epsilon(0.03));
    }
}

TEST_CASE("a program that is alone waits for another for a while of the host's time, and never again",
          "[pairs]") {
    World world;
    world.programs = {{.stream = 1, .kernel = known("a")}};
    world.run(50ms);
    CHECK(world.programs[0].state == State::kWaiting);
    world.host += 9s;
    world.run(1ms);
    CHECK(world.programs[0].state == State::kWaiting);
    world.host += 2s;
    world.run(1ms);
    CHECK(world.programs[0].passes_through);
    // A program that comes late is measured all the same: what passes_through is stopped for it.
    world.programs.push_back({.stream = 2, .kernel = known("b")});
    world.run(1s);
    CHECK(sums_of(world.news(0)).size() == 3);
    CHECK(World{}.pairing.summary().find("no two programs had kernels at work") != std::string::npos);
}

TEST_CASE("no program waits for one that ends, or has nothing to do, in the middle of a window", "[pairs]") {
    World world;
    world.programs = {{.stream = 1, .kernel = known("a")}, {.stream = 2, .kernel = known("b")}};
    world.run(10ms);
    REQUIRE(world.pairing.counts(1));
    CHECK((world.programs[0].state == State::kRunning && !world.programs[0].passes_through));
    world.programs[1].works = false;
    world.programs[1].back = schedule::TimePoint::max();
    world.run(10ms);
    CHECK_FALSE(world.programs[0].passes_through);  // it may launch again
    world.run(30ms);
    CHECK(world.programs[0].passes_through);
    world.programs[1].back = {};  // and does, late
    world.run(10ms);
    CHECK_FALSE(world.programs[0].passes_through);
    world.pairing.leave(2);
    world.programs.pop_back();
    world.run(1ms);
    CHECK(world.programs[0].passes_through);
    CHECK(world.pairing.summary().find("missing: 3 of 3 combinations of a and b") != std::string::npos);
}

TEST_CASE("what a window had counted is kept while another kernel is there", "[pairs]") {
    World world;
    const auto b = known("b"), c = known("c");
    world.programs = {{.stream = 1, .kernel = known("a")}, {.stream = 2, .kernel = b}};
    for (int i = 0; i < 200; ++i) {  // a third of a window each
        world.run(10ms);
        world.programs[1].kernel = i % 2 ? b : c;
        world.programs[1].launch++, world.programs[1].done = 0;
        world.programs[1].state = State::kWaiting, world.programs[1].passes_through = false;
    }
    CHECK(sums_of(b->take_news()).size() == 3);
    CHECK(sums_of(c->take_news()).size() == 3);
    CHECK(world.pairing.summary() ==
          "side by side: 12 windows measured of 2 pairs of kernels; nothing is missing");
}

TEST_CASE("what tells nothing is given up, with the reason", "[pairs]") {
    World few;
    few.programs = {{.stream = 1, .kernel = known("a"), .blocks = 20, .gap = 1ms},
                    {.stream = 2, .kernel = known("b")}};
    few.run(101ms);
    CHECK(few.pairing.summary().find("some have too few blocks") != std::string::npos);
    CHECK(few.programs[1].passes_through);
    World brief;  // 0.04 to 0.12 ms each
    brief.programs = {{.stream = 1, .kernel = known("a"), .blocks = 120, .gap = 50us},
                      {.stream = 2, .kernel = known("b")}};
    brief.run(8001ms);
    CHECK(brief.pairing.summary().find(
              "missing: 3 of 3 combinations of a and b, whose launches are too short") != std::string::npos);
    CHECK(brief.programs[1].passes_through);
    CHECK(brief.news(0).empty());
    World starved;  // of one hardly anything gets done beside the other
    starved.programs = {{.stream = 1, .kernel = known("a"), .rate = 1e-5},
                        {.stream = 2, .kernel = known("b")}};
    starved.run(8001ms);
    CHECK(starved.pairing.summary().find("missing: 3 of 3 combinations of a and b, of which one gets less "
                                         "than a round of its blocks done beside the other") !=
          std::string::npos);
    CHECK((starved.programs[1].passes_through && starved.news(0).empty()));
    World crowded;  // some CTAs find no place
    crowded.programs = {{.stream = 1, .kernel = known("a"), .complete = false},
                        {.stream = 2, .kernel = known("b")}};
    crowded.run(3s);
    CHECK(crowded.pairing.summary().find("of a and b, of which not all CTAs found a place") !=
          std::string::npos);
    CHECK(crowded.news(1).empty());
    World stubborn;  // it cannot be stopped
    stubborn.programs = {{.stream = 1, .kernel = known("a"), .blocks = 1'000'000'000, .stops = false},
                         {.stream = 2, .kernel = known("b")}};
    stubborn.programs[0].state = State::kRunning, stubborn.programs[0].passes_through = true,
    stubborn.programs[0].ctas = 4;
    stubborn.run(1s);
    CHECK(stubborn.programs[1].state == State::kWaiting);
    stubborn.run(2001ms);
    CHECK(stubborn.programs[1].passes_through);
    World apart;
    apart.programs = {{.stream = 1, .kernel = known("a"), .parts = 1}, {.stream = 2, .kernel = known("b")}};
    apart.run(101ms);
    CHECK(apart.programs[1].passes_through);
    CHECK(apart.pairing.summary().find("a and b do not fit on a multiprocessor together") !=
          std::string::npos);
    CHECK(apart.pairing.summary().find(profiles::kNothingMissing) == std::string::npos);
}

TEST_CASE("time with a third one at work is not counted, and streams of one program are no pair", "[pairs]") {
    World world;
    world.programs = {{.stream = 1, .kernel = known("a")},
                      {.stream = 2, .kernel = known("b")},
                      {.stream = 3, .kernel = nullptr}};
    world.run(1s);
    CHECK(world.programs[2].passes_through);
    CHECK(world.news(0).empty());
    world.pairing.leave(3);
    world.programs.pop_back();
    world.run(1s);
    CHECK(sums_of(world.news(0)).size() == 3);
    Pairing pairing(schedule::Device{kSms, kSm}, {}, [] { return schedule::TimePoint{}; });
    Program first{.stream = 1, .kernel = known("a")}, second{.stream = 2, .kernel = known("b")};
    Seat one = first.seat(), two = second.seat();
    two.kernel.session = one.kernel.session;
    pairing.see(1, one, {});
    pairing.see(2, two, {});
    CHECK_FALSE(pairing.counts(1));
}
