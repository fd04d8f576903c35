#include "runtime/profiles/known_kernel.h"

#include <catch2/catch.hpp>

#include "runtime/profiles/translate.h"

using namespace smt::runtime;
using namespace smt::runtime::profiles;
using smt::profiler::Profile;

namespace {

DeviceFacts small_device() { return {"a device", 10, {1e9, 40, 20}, {}}; }

Profile stored(std::array<int64_t, 3> block, int64_t grid_class, int64_t ns_per_block) {
    Profile one;
    one.key = {"kernel", "image", block, grid_class, "a device"};
    one.times[{10, 4}] = {1, 100, 0, 100 * ns_per_block};
    return one;
}

}  // namespace

TEST_CASE("what was learnt is news by block shape and class of grids, summed", "[known]") {
    KnownKernel kernel("kernel", "image", small_device());
    CHECK(kernel.take_news().empty());
    const Shape large{{256, 1, 1}, 5000}, larger{{256, 1, 1}, 6000}, other{{128, 2, 1}, 5000};
    kernel.ran(large, {10, 4}, 5000, 700);
    kernel.ran(larger, {10, 4}, 6000, 900, 1 << 20);
    kernel.ran(large, {1, 4}, 8, 100);
    kernel.ran(other, {10, 4}, 5000, 1);
    kernel.stopped(large, 30);
    kernel.ran(large, {10, 4}, 0, 50);  // nothing ran
    const std::vector<Profile> news = kernel.take_news();
    REQUIRE(news.size() == 2);
    CHECK(news[1].key == smt::profiler::Key{"kernel", "image", {256, 1, 1}, 12, "a device"});
    CHECK(news[1].times.at({10, 4}) == smt::profiler::Times{2, 11'000, 1 << 20, 1600});
    CHECK(news[1].times.at({1, 4}) == smt::profiler::Times{1, 8, 0, 100});
    CHECK(news[1].preemption == smt::profiler::Preemption{1, 30});
    CHECK(news[1].coefficients.at("device.multiprocessors") == 10);
    CHECK(news[0].key.block == std::array<int64_t, 3>{128, 2, 1});
    CHECK(kernel.take_news().empty());
}

TEST_CASE("a profile is found by its block shape and the nearest class of grids", "[known]") {
    KnownKernel kernel("kernel", "image", small_device());
    const Shape shape{{256, 1, 1}, 1024};
    CHECK_FALSE(kernel.find(shape));
    kernel.know({stored({256, 1, 1}, 9, 10), stored({128, 1, 1}, 10, 20), stored({256, 1, 1}, 13, 30)});
    REQUIRE(kernel.find(shape));  // class 10; 9 is one away
    CHECK(*kernel.predict(shape) == Approx(10.0 * 1024));
    CHECK_FALSE(kernel.find({{256, 1, 1}, 2048}));  // 11: two away from both
    CHECK(*kernel.predict({{256, 1, 1}, 4096}) == Approx(30.0 * 4096));
    CHECK_FALSE(kernel.find({{64, 1, 1}, 1024}));
    kernel.know({stored({256, 1, 1}, 9, 10), stored({256, 1, 1}, 10, 7)});
    CHECK(*kernel.predict(shape) == Approx(7.0 * 1024));  // its own class comes first
}

TEST_CASE("a profile that says the same stays the same object", "[known]") {
    KnownKernel kernel("kernel", "image", small_device());
    const Shape shape{{256, 1, 1}, 1024}, other{{128, 1, 1}, 1024};
    kernel.know({stored({256, 1, 1}, 10, 10), stored({128, 1, 1}, 10, 10)});
    const auto before = kernel.find(shape), before_other = kernel.find(other);
    kernel.know({stored({256, 1, 1}, 10, 10), stored({128, 1, 1}, 10, 11)});
    CHECK(kernel.find(shape) == before);
    CHECK(kernel.find(other) != before_other);
}

TEST_CASE("what ran beside another kernel is news, and counts with what is stored", "[known]") {
    KnownKernel kernel("kernel", "image", small_device()), other("other", "image", small_device());
    const Shape shape{{256, 1, 1}, 1024}, of_other{{64, 1, 1}, 5000};
    CHECK(other.key(of_other) == smt::profiler::Key{"other", "image", {64, 1, 1}, 12, "a device"});
    const smt::profiler::Beside company{other.key(of_other), 3, 5}, less{other.key(of_other), 2, 6};
    Profile before = stored({256, 1, 1}, 10, 10);
    before.beside[company] = {1, 30, 300};
    kernel.know({before});
    CHECK(kernel.windows(shape, company) == 1);
    kernel.ran_beside(shape, company, 40, 500);
    kernel.ran_beside(shape, company, 50, 600);
    kernel.ran_beside(shape, less, 0, 600);  // nothing ran
    CHECK(kernel.windows(shape, company) == 3);
    CHECK(kernel.windows(shape, less) == 0);
    CHECK(kernel.windows({{256, 1, 1}, 2048}, company) == 0);  // exactly this class
    const std::vector<Profile> news = kernel.take_news();
    REQUIRE(news.size() == 1);
    CHECK(news[0].beside ==
          std::map<smt::profiler::Beside, smt::profiler::SharedTime>{{company, {2, 90, 1100}}});
    CHECK(news[0].coefficients.at("device.multiprocessors") == 10);
}

TEST_CASE("samples count what is stored and what is new", "[known]") {
    KnownKernel kernel("kernel", "image", small_device());
    const Shape shape{{256, 1, 1}, 1024};
    kernel.know({stored({256, 1, 1}, 10, 10)});
    CHECK(kernel.samples(shape, {10, 4}) == 1);
    kernel.ran(shape, {10, 4}, 1024, 5);
    CHECK(kernel.samples(shape, {10, 4}) == 2);
    CHECK(kernel.samples(shape, {10, 3}) == 0);
    CHECK(kernel.samples({{256, 1, 1}, 2048}, {10, 4}) == 0);  // exactly this class
    CHECK(kernel.counted_blocks(shape) == 0);
    kernel.counted(shape, {.blocks = 1024}, {{"counted.hertz", 2e9}});
    CHECK(kernel.counted_blocks(shape) == 1024);
    const Profile news = kernel.take_news().at(0);
    CHECK(news.coefficients.at("counted.hertz") == 2e9);
    CHECK(news.coefficients.at("peak.instructions_per_cycle") == 40);
    CHECK(news.coefficients.at("peak.requests_per_cycle") == Approx(10));  // of that clock
}

TEST_CASE("policies see at once what is learnt, and what was measured counts first", "[known]") {
    KnownKernel kernel("kernel", "image", small_device()), other("other", "image", small_device());
    const Shape shape{{256, 1, 1}, 1024};
    const smt::profiler::Beside company{other.key(shape), 1, 2};
    CHECK_FALSE(kernel.find(shape));
    const auto begun = kernel.find_or_begin(shape);
    REQUIRE(begun);
    CHECK(begun == kernel.find_or_begin(shape));
    CHECK(begun->identity == identity_of(kernel.key(shape)));
    CHECK(begun->timed.empty());

    kernel.learnt(shape, {10, 4}, 100, 1000);
    kernel.learnt(shape, {1, 4}, 20, 1000);
    CHECK(kernel.has_time(shape, {1, 4}));
    CHECK_FALSE(kernel.has_time(shape, {1, 2}));
    REQUIRE(kernel.find(shape));
    CHECK(kernel.find(shape)->identity == begun->identity);
    CHECK(kernel.find(shape)->timed.size() == 2);
    REQUIRE(kernel.find(shape)->footprint);
    CHECK(kernel.find(shape)->footprint_learnt);
    CHECK(kernel.find(shape)->footprint->sms == 5);
    CHECK_FALSE(kernel.predict(shape));  // of trials no duration is predicted

    kernel.learnt_beside(shape, company, 50, 1000);
    CHECK(kernel.has_rate(shape, company));
    REQUIRE(kernel.find(shape)->beside.size() == 1);
    CHECK(kernel.find(shape)->beside[0].learnt);
    CHECK(kernel.find(shape)->beside[0].rate == Approx(0.5));

    // The store: what was learnt, and now also measured.
    std::vector<Profile> news = kernel.take_news();
    REQUIRE(news.size() == 1);
    CHECK(news[0].times.empty());
    news[0].times = {{{10, 4}, {1, 100, 0, 500}}, {{1, 4}, {1, 100, 0, 5000}}};
    news[0].beside[company] = {2, 150, 1000};
    kernel.know(news);
    CHECK_FALSE(kernel.find(shape)->footprint_learnt);
    CHECK(kernel.find(shape)->footprint->sms == 10);
    CHECK_FALSE(kernel.find(shape)->beside[0].learnt);
    CHECK(kernel.find(shape)->beside[0].rate == Approx(0.75));
    CHECK(*kernel.predict(shape) == Approx(5.0 * 1024));
}

TEST_CASE("what is learnt of a class of grids does not hide what was measured of the next", "[known]") {
    KnownKernel kernel("kernel", "image", small_device());
    const Shape shape{{256, 1, 1}, 1024}, other{{256, 1, 1}, 4096};
    Profile measured = stored({256, 1, 1}, 11, 10);
    measured.times[{1, 4}] = {1, 100, 0, 10'000};
    kernel.know({measured});
    kernel.learnt(shape, {10, 4}, 100, 9);
    CHECK(kernel.find(shape)->timed.size() == 2);
    CHECK_FALSE(kernel.find(shape)->footprint_learnt);
    kernel.learnt(other, {10, 4}, 100, 9);
    CHECK(kernel.find({{256, 1, 1}, 8192})->timed.size() == 1);  // the only one near
}

TEST_CASE("what is learnt while the store is read stays known", "[known]") {
    KnownKernel kernel("kernel", "image", small_device());
    const Shape shape{{256, 1, 1}, 1024};
    kernel.learnt(shape, {10, 4}, 100, 1000);
    kernel.know(kernel.take_news());
    kernel.learnt(shape, {10, 2}, 100, 2000);
    kernel.know({stored({256, 1, 1}, 10, 10)});
    CHECK(kernel.has_time(shape, {10, 2}));
    CHECK(kernel.find(shape)->by_ctas.size() == 2);
}

TEST_CASE("what slices cost is told from the fourth on", "[known]") {
    KnownKernel kernel("kernel", "image", small_device());
    const Shape shape{{256, 1, 1}, 1024};
    for (int i = 0; i < 3; ++i) kernel.sliced(shape, 1000);
    CHECK_FALSE(kernel.find(shape));
    kernel.sliced(shape, 5000);
    REQUIRE(kernel.find(shape));
    CHECK(*kernel.find(shape)->slice_overhead == std::chrono::nanoseconds(2000));
    CHECK(kernel.slices(shape) == 4);
}
