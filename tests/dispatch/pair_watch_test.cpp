#include "runtime/dispatch/pair_watch.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace smt::runtime;
using namespace std::chrono_literals;
using dispatch::PairWatch;

namespace {

constexpr int kSmsOfPair = 10;

std::shared_ptr<profiles::KnownKernel> known_as(const std::string& symbol) {
    return std::make_shared<profiles::KnownKernel>(
        symbol, "image", profiles::DeviceFacts{"a device", kSmsOfPair, {1e9, 40, 20}, {}});
}

// Two kernels whose blocks take 100 us and 50 us.
struct WatchedPair {
    PairWatch watch{kSmsOfPair, 0us};
    std::shared_ptr<profiles::KnownKernel> one = known_as("one"), two = known_as("two");
    profiles::Shape shape{{256, 1, 1}, 100'000};
    schedule::TimePoint now = schedule::TimePoint{} + 1h;
    int asked = 0;
    bool complete = true;
    uint64_t done[2] = {};

    PairWatch::Seat seat(uint64_t stream, int ctas) {
        PairWatch::Seat made;
        made.stream = stream;
        made.ctas = ctas;
        made.known = stream == 1 ? one : two;
        made.shape = shape;
        made.kernel.id = stream;
        made.kernel.session = static_cast<uint32_t>(stream);
        made.kernel.launch = 5;
        made.kernel.blocks = 100'000;
        made.kernel.blocks_done = done[stream - 1];
        made.complete = [this] { return ++asked, complete; };
        return made;
    }
    // So many CTAs of each on each SM, for so long.
    std::string look(std::vector<PairWatch::Seat> (*seats)(WatchedPair&), schedule::Duration time) {
        std::string said;
        for (const schedule::TimePoint end = now + time; now < end && said.empty(); now += 10us) {
            const double us = std::chrono::duration<double, std::micro>(now.time_since_epoch() - 1h).count();
            done[0] = static_cast<uint64_t>(us / 100) * 2 * kSmsOfPair;
            done[1] = static_cast<uint64_t>(us / 50) * 3 * kSmsOfPair;
            said = watch.look(now, seats(*this));
        }
        return said;
    }
    bool is_known() const {
        return one->has_rate(shape, {two->key(shape), 2, 3}) && two->has_rate(shape, {one->key(shape), 3, 2});
    }
};

std::vector<PairWatch::Seat> both(WatchedPair& pair) { return {pair.seat(2, 3), pair.seat(1, 2)}; }

}  // namespace

TEST_CASE("pair watch: two that keep to so many CTAs are learnt side by side", "[dispatch]") {
    WatchedPair pair;
    const std::string said = pair.look(both, 10ms);
    CHECK(said.starts_with("learnt: one with 2 CTAs an SM beside two with 3: "));
    REQUIRE(pair.is_known());
    const auto news = pair.one->take_news();
    REQUIRE(news.size() == 1);
    CHECK(news[0].beside.empty());
    const smt::profiler::SharedTime learnt = news[0].learnt_beside.at({pair.two->key(pair.shape), 2, 3});
    CHECK(learnt.windows == 1);
    // 20 blocks in 100 us.
    CHECK(static_cast<double>(learnt.blocks) / static_cast<double>(learnt.nanoseconds) ==
          Approx(20 / 1e5).epsilon(0.1));
    CHECK(pair.asked == 2);  // once for each launch
}

TEST_CASE("pair watch: what is known is not watched again", "[dispatch]") {
    WatchedPair pair;
    pair.one->learnt_beside(pair.shape, {pair.two->key(pair.shape), 2, 3}, 10, 10);
    pair.two->learnt_beside(pair.shape, {pair.one->key(pair.shape), 3, 2}, 10, 10);
    CHECK(pair.look(both, 10ms).empty());
    CHECK(pair.asked == 0);
}

TEST_CASE("pair watch: nothing is learnt beside a third, in pass-through mode, or where CTAs have no place",
          "[dispatch]") {
    const auto third = [](WatchedPair& pair) {
        auto seats = both(pair);
        seats.push_back({});
        return seats;
    };
    const auto passes = [](WatchedPair& pair) {
        return std::vector<PairWatch::Seat>{pair.seat(1, 2), pair.seat(2, 0)};
    };
    const auto of_one_session = [](WatchedPair& pair) {
        auto seats = both(pair);
        seats[0].kernel.session = seats[1].kernel.session;
        return seats;
    };
    const auto not_kept = [](WatchedPair& pair) {
        auto seats = both(pair);
        seats[0].known = nullptr;
        return seats;
    };
    for (const auto& seats : {+third, +passes, +of_one_session, +not_kept}) {
        WatchedPair pair;
        CHECK(pair.look(seats, 10ms).empty());
        CHECK_FALSE(pair.is_known());
    }
    WatchedPair pair;
    pair.complete = false;
    CHECK(pair.look(both, 10ms).empty());
    CHECK(pair.asked <= 2 * 11);  // each ms
    pair.complete = true;
    CHECK_FALSE(pair.look(both, 10ms).empty());
}
