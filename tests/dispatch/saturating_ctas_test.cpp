#include "runtime/dispatch/saturating_ctas.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

using smt::runtime::dispatch::SaturatingCtas;

namespace {

constexpr uint32_t kMultiprocessors = 132;

// Launches of a kernel whose multiprocessors do no more with more CTAs than `saturates`. Returns the CTAs of
// each.
std::vector<uint32_t> launch(SaturatingCtas& enough, uint32_t fits, double saturates, int launches) {
    std::vector<uint32_t> found;
    for (int i = 0; i < launches; ++i) {
        const SaturatingCtas::Try now = enough.next(fits);
        found.push_back(now.ctas);
        if (!now.asks) continue;
        const uint64_t blocks = 10 * kMultiprocessors * now.ctas;
        const double each_ns = 1e5 * std::max(1.0, now.ctas / saturates);
        enough.learn(fits, now.ctas, kMultiprocessors,
                     {kMultiprocessors * now.ctas, blocks,
                      static_cast<uint64_t>(each_ns * static_cast<double>(blocks) / now.ctas)});
    }
    return found;
}

}  // namespace

TEST_CASE("the fewest CTAs that get as much done are found", "[dispatch]") {
    for (uint32_t fits = 1; fits <= 32; ++fits) {
        for (uint32_t saturates = 1; saturates <= fits; ++saturates) {
            SaturatingCtas enough;
            const std::vector<uint32_t> ctas = launch(enough, fits, saturates, 12);
            INFO(fits << " fit, " << saturates << " are enough");
            CHECK(ctas.front() == fits);
            CHECK(ctas.back() == saturates);
            CHECK_FALSE(enough.next(fits).asks);
            CHECK(enough.found(fits) == saturates);
            CHECK(enough.found(fits + 1) == 0);
        }
    }
}

TEST_CASE("a little less is as much", "[dispatch]") {
    SaturatingCtas enough;
    CHECK(launch(enough, 8, 4.05, 12).back() == 4);
    SaturatingCtas other;
    CHECK(launch(other, 8, 4.2, 12).back() == 5);
}

TEST_CASE("a few blocks decide nothing, nor does what was launched before", "[dispatch]") {
    SaturatingCtas enough;
    CHECK(enough.next(8).ctas == 8);
    CHECK_FALSE(
        enough.learn(8, 8, kMultiprocessors, {kMultiprocessors * 8, 3 * kMultiprocessors * 8, 1'000'000}));
    CHECK(enough.next(8).ctas == 8);
    enough.learn(8, 8, kMultiprocessors, {kMultiprocessors * 8, 1 * kMultiprocessors * 8, 1'000'000});
    CHECK(enough.next(8).ctas == 4);
    enough.learn(8, 8, kMultiprocessors, {kMultiprocessors * 8, 100 * kMultiprocessors * 8, 1'000'000});
    CHECK(enough.next(8).ctas == 4);
    CHECK(enough.found(8) == 0);
}

TEST_CASE("pieces of a few blocks that a stop left decide nothing, however many", "[dispatch]") {
    SaturatingCtas enough;
    constexpr uint64_t kWorkers = kMultiprocessors * 8;
    REQUIRE(enough.next(8).asks);
    for (int i = 0; i < 10; ++i)
        CHECK_FALSE(enough.learn(8, 8, kMultiprocessors, {kWorkers, 7 * kWorkers, 1'000'000, true}));
    CHECK(enough.next(8).ctas == 8);
    enough.learn(8, 8, kMultiprocessors, {kWorkers, 8 * kWorkers, 1'000'000, true});
    CHECK(enough.next(8).ctas == 4);
}

TEST_CASE("where all pieces are short they decide after all", "[dispatch]") {
    SaturatingCtas enough;
    constexpr uint64_t kWorkers = kMultiprocessors * 8;
    REQUIRE(enough.next(8).asks);
    for (int i = 0; i < SaturatingCtas::kMostShort; ++i)
        enough.learn(8, 8, kMultiprocessors, {kWorkers, 4 * kWorkers, 1'000'000, true});
    REQUIRE(enough.next(8).ctas == 8);
    enough.learn(8, 8, kMultiprocessors, {kWorkers, 4 * kWorkers, 1'000'000, true});
    CHECK(enough.next(8).ctas == 4);
}

TEST_CASE("the last block before a stop is run beside fewer, which excuses a little", "[dispatch]") {
    constexpr uint64_t kWorkers = kMultiprocessors * 8;
    struct Row {
        uint64_t time_ns;
        bool stopped;
        uint32_t next;  // 2: four are enough
    };
    // Of 1'000'000 with all; each 20th block was a worker's last one.
    for (const Row& row : {Row{1'025'000, true, 2}, Row{1'025'000, false, 6}, Row{1'050'000, true, 6}}) {
        SaturatingCtas enough;
        REQUIRE(enough.next(8).ctas == 8);
        enough.learn(8, 8, kMultiprocessors, {kWorkers, 10 * kWorkers, 1'000'000});
        REQUIRE(enough.next(8).ctas == 4);
        enough.learn(8, 4, kMultiprocessors, {kWorkers / 2, 10 * kWorkers, row.time_ns, row.stopped});
        CHECK(enough.next(8).ctas == row.next);
    }
}

TEST_CASE("another shape is another kernel", "[dispatch]") {
    SaturatingCtas enough;
    launch(enough, 8, 3, 12);
    CHECK(enough.next(4).ctas == 4);
    CHECK(enough.next(4).asks);
    launch(enough, 4, 3, 12);
    enough.forget();
    CHECK(enough.next(4).asks);
}

TEST_CASE("multiprocessors that a launch may use and has no worker on count as idle", "[dispatch]") {
    const auto worker = [](uint32_t sm, uint64_t began, uint64_t ended) {
        smt::Mapping made{};
        made.sm = sm, made.blocks = 1, made.began = began, made.ended = ended;
        return made;
    };
    const std::vector<smt::Mapping> spread{worker(0, 100, 200), worker(1, 100, 180), worker(2, 110, 200),
                                           worker(0, 120, 210)};
    CHECK(smt::runtime::dispatch::time_of_multiprocessors(spread, 3) == 110 + 80 + 90);
    const std::vector<smt::Mapping> packed{worker(0, 100, 200), worker(0, 100, 180), worker(0, 110, 200),
                                           worker(0, 120, 210)};
    CHECK(smt::runtime::dispatch::time_of_multiprocessors(packed, 3) == 3 * 110);
    CHECK(smt::runtime::dispatch::time_of_multiprocessors({}, 3) == 0);
}

TEST_CASE("whose first launch was held up by others is judged by the most that it did", "[dispatch]") {
    constexpr uint64_t kWorkers = kMultiprocessors * 8;
    const auto done = [&](uint32_t ctas, uint64_t time_ns) {
        return SaturatingCtas::Done{kMultiprocessors * ctas, 10 * kWorkers, time_ns};
    };
    SaturatingCtas enough;
    REQUIRE(enough.next(8).ctas == 8);
    enough.learn(8, 8, kMultiprocessors, done(8, 4'000'000));
    REQUIRE(enough.next(8).ctas == 4);
    enough.learn(8, 4, kMultiprocessors, done(4, 1'000'000));
    REQUIRE(enough.next(8).ctas == 2);
    enough.learn(8, 2, kMultiprocessors, done(2, 2'000'000));
    REQUIRE(enough.next(8).ctas == 3);
    CHECK(enough.learn(8, 3, kMultiprocessors, done(3, 1'300'000)));
    CHECK(enough.found(8) == 4);
}

TEST_CASE("a launch whose places others had is no trial", "[dispatch]") {
    constexpr uint64_t kBlocks = 100 * kMultiprocessors, kTime = 1'000'000;
    const SaturatingCtas::Done one_of_two{2 * kMultiprocessors, kBlocks, 2 * kTime, false, 0.5};
    SaturatingCtas enough;
    REQUIRE(enough.next(2).ctas == 2);
    CHECK_FALSE(enough.learn(2, 2, kMultiprocessors, one_of_two));
    REQUIRE(enough.next(2).ctas == 2);
    CHECK_FALSE(enough.learn(2, 2, kMultiprocessors, {2 * kMultiprocessors, kBlocks, kTime}));
    REQUIRE(enough.next(2).ctas == 1);
    CHECK(enough.learn(2, 1, kMultiprocessors, {kMultiprocessors, kBlocks, 2 * kTime}));
    CHECK(enough.found(2) == 2);
}

TEST_CASE("where others are always there, all that fit are enough", "[dispatch]") {
    const SaturatingCtas::Done crowded{kMultiprocessors, 100 * kMultiprocessors, 1'000'000, false, 0.5};
    SaturatingCtas enough;
    for (int i = 1; i < SaturatingCtas::kMostCrowded; ++i) {
        REQUIRE(enough.next(4).asks);
        CHECK_FALSE(enough.learn(4, 4, kMultiprocessors, crowded));
    }
    CHECK_FALSE(enough.learn(4, 4, kMultiprocessors, crowded));  // known, and not found
    CHECK(enough.found(4) == 4);
    CHECK_FALSE(enough.next(4).asks);
}

TEST_CASE("how late a launch's CTAs begin", "[dispatch]") {
    const auto worker = [](uint64_t began, uint64_t ended) {
        smt::Mapping made{};
        made.began = began, made.ended = ended;
        return made;
    };
    using smt::runtime::dispatch::late_part;
    CHECK(late_part({worker(100, 200), worker(100, 150)}, 2) == 0);  // the end of a launch is no delay
    CHECK(late_part({worker(100, 200), worker(150, 200)}, 2) == Approx(0.25));
    CHECK(late_part({worker(100, 200), worker(100, 200)}, 4) == Approx(0.5));
    CHECK(late_part({}, 4) == 0);
}
