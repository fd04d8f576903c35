// What counts as a request of a service.
#include "runtime/schedule/requests.h"

#include "tests/policy/snapshots.h"

namespace smt::tests {
namespace {

class Timeline {
public:
    // Work begins or ends, or a look is made; of the requests that are over, the first.
    std::optional<Request> at(Duration moment, bool now_works, uint64_t launches) {
        begin_or_end(moment, now_works, launches);
        all = requests.note(service_.take(), kBegin + moment);
        return all.empty() ? std::nullopt : std::optional(all.front());
    }
    // Likewise, and no look is made.
    void begin_or_end(Duration moment, bool now_works, uint64_t launches) {
        service_.launches = launches;
        service_.over = launches - (now_works ? 1 : 0);
        service_.works(works = now_works, kBegin + moment);
    }
    Requests requests;
    std::vector<Request> all;  // that the last look found over
    bool works = false;

private:
    Worked service_;
};

}  // namespace

TEST_CASE("requests: a burst of launches, until it pauses for longer than they do", "[policy]") {
    Timeline line;
    CHECK_FALSE(line.at(0us, false, 10));
    CHECK_FALSE(line.at(100us, true, 11));
    CHECK(line.requests.has_begun());
    CHECK_FALSE(line.at(300us, false, 14));
    CHECK_FALSE(line.at(320us, true, 15));  // it computes between two launches
    CHECK_FALSE(line.requests.has_begun());
    CHECK_FALSE(line.at(1100us, false, 20));
    CHECK(line.requests.at_work(kBegin + 1299us));
    CHECK_FALSE(line.requests.at_work(kBegin + 1300us));
    CHECK_FALSE(line.at(1340us, false, 20));
    CHECK(*line.requests.changes_after(kBegin + 1340us) == 10us);
    const auto over = line.at(1350us, false, 20);  // a quarter of 1 ms
    REQUIRE(over);
    CHECK(over->time == 1ms);
    CHECK(over->busy == 1ms);
    CHECK(over->launches == 10);
    CHECK_FALSE(line.requests.changes_after(kBegin + 2ms));
}

TEST_CASE("requests: one that is seen to be over when the next one begins", "[policy]") {
    Timeline line;
    line.at(0us, false, 0);
    line.at(1ms, true, 1);
    line.at(2ms, false, 7);
    const auto over = line.at(9ms, true, 8);
    REQUIRE(over);
    CHECK(over->time == 1ms);
    CHECK(over->launches == 7);
    CHECK(line.requests.has_begun());
    line.at(10ms, false, 14);
    CHECK(line.at(13ms, false, 14)->launches == 7);
}

TEST_CASE("requests: how rarely a look is made changes nothing", "[policy]") {
    for (const Duration looks : std::vector<Duration>{90us, 700us, 9ms}) {
        INFO(looks.count());
        Timeline line;
        line.at(0us, false, 0);
        std::vector<Request> over;
        uint64_t launches = 0;
        Duration next{};
        const auto come_to = [&](Duration moment) {  // with the looks on the way
            for (; next < moment; next += looks) {
                line.at(next, line.works, launches);
                over.insert(over.end(), line.all.begin(), line.all.end());
            }
        };
        for (Duration begin = 10ms; begin < 100ms; begin += 10ms) {
            for (int i = 0; i < 40; ++i) {  // one launch every 100 us
                come_to(begin + i * 100us);
                line.begin_or_end(begin + i * 100us, true, ++launches);
                come_to(begin + i * 100us + 30us);
                line.begin_or_end(begin + i * 100us + 30us, false, launches);
            }
        }
        come_to(120ms);
        REQUIRE(over.size() == 9);
        for (const Request& each : over) {
            CHECK(each.time == 3930us);
            CHECK(each.busy == 3930us);
            CHECK(each.launches == 40);
            CHECK_FALSE(each.cut);
            if (looks < 3930us) CHECK(each.seen);
        }
    }
}

TEST_CASE("requests: of those between two looks all but the first are not seen", "[policy]") {
    Timeline line;
    line.at(0us, true, 1);
    line.begin_or_end(1ms, false, 5);
    line.begin_or_end(4ms, true, 6);
    line.begin_or_end(5ms, false, 9);
    line.begin_or_end(8ms, true, 10);
    REQUIRE(line.at(9ms, true, 12));
    REQUIRE(line.all.size() == 2);
    CHECK((line.all[0].seen && line.all[0].launches == 5 && line.all[0].time == 1ms));
    CHECK((!line.all[1].seen && line.all[1].launches == 4 && line.all[1].time == 1ms));
    CHECK(line.requests.has_begun());
    CHECK(line.requests.began() == kBegin + 8ms);
    CHECK(line.requests.over_before() == 9);
    CHECK(line.requests.so_far(12, kBegin + 9ms).launches == 3);
    CHECK_FALSE(line.at(9ms, true, 12));
    CHECK_FALSE(line.requests.has_begun());
}

TEST_CASE("requests: what snapshots tell twice counts once", "[policy]") {
    Service service;
    Requests requests;
    requests.note(service, kBegin);
    const TimePoint first = kBegin + 1ms, end = kBegin + 2ms, second = kBegin + 9ms;
    service.launches = 4, service.over = 3;
    service.activity = {true, second, end, {{{}, first, 0, 0}, {end, second, 3, 3}}};
    CHECK(requests.note(service, kBegin + 10ms).size() == 1);
    CHECK(requests.note(service, kBegin + 10ms).empty());
    // Read while work begins: an end of before, and a begin behind it.
    service.launches = 5;
    service.activity = {false, kBegin + 12ms, kBegin + 11ms, {}};
    CHECK(requests.note(service, kBegin + 12ms).empty());
    CHECK(requests.so_far(5, kBegin + 20ms).time == 11ms);
}

TEST_CASE("requests: where pauses are only counted, what is in front of those known is not told",
          "[policy]") {
    Service service;
    Requests requests;
    service.activity = {true, kBegin, {}, {}};
    requests.note(service, kBegin);
    const auto at = [](Duration moment) { return kBegin + moment; };
    service.launches = 14, service.over = 13;
    service.activity = {
        true, at(15ms), at(12ms), {{at(10ms), at(11ms), 10, 10}, {at(12ms), at(15ms), 13, 13}}, 5};
    const std::vector<Request> over = requests.note(service, at(16ms));
    REQUIRE(over.size() == 1);
    CHECK(over[0].time == 1ms);
    CHECK(over[0].launches == 3);
    CHECK(requests.began() == at(15ms));
    CHECK(requests.note(service, at(16ms)).empty());  // told twice
    CHECK(requests.began() == at(15ms));
}

TEST_CASE("requests: long pauses within one are no work", "[policy]") {
    Timeline line;
    line.at(0us, true, 1);
    line.at(8ms, false, 20);
    line.at(9ms, true, 21);
    line.at(15ms, false, 40);
    const auto over = line.at(17ms, false, 40);  // 2 ms end every request
    REQUIRE(over);
    CHECK(over->time == 15ms);
    CHECK(over->busy == 14ms);
    CHECK(over->launches == 40);
}

TEST_CASE("requests: a program that never pauses is cut", "[policy]") {
    Timeline line;
    line.at(0us, true, 1);
    CHECK(*line.requests.changes_after(kBegin) == 200ms);
    const auto over = line.at(200ms, true, 1001);
    REQUIRE(over);
    CHECK(over->cut);
    CHECK(over->time == 200ms);
    CHECK(over->launches == 1001);
    CHECK(line.requests.has_begun());
    CHECK(line.at(400ms, true, 3001)->launches == 2000);
}

}  // namespace smt::tests
