// What counts as a request of a service.
#include "runtime/schedule/requests.h"

#include "tests/policy/snapshots.h"

namespace smt::tests {
namespace {

class Timeline {
public:
    std::optional<Request> at(Duration moment, bool works, uint64_t launches) {
        return requests.note(works, launches, kBegin + moment);
    }
    Requests requests;
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

TEST_CASE("requests: launches that no look saw leave no pause behind", "[policy]") {
    Timeline line;
    line.at(0us, true, 1);
    line.at(20us, false, 1);
    for (int look = 1; look < 20; ++look) {  // each comes between two launches
        CHECK_FALSE(line.at(20us + look * 90us, false, 1 + look * 3));
        CHECK(line.requests.at_work(kBegin + 20us + look * 90us));
    }
    CHECK_FALSE(line.at(1820us, true, 61));
    CHECK_FALSE(line.requests.has_begun());
    line.at(1840us, false, 61);
    const auto over = line.at(3ms, true, 70);  // no look for longer than a pause
    REQUIRE(over);
    CHECK(line.requests.has_begun());
    CHECK(over->launches == 61);
    CHECK(over->busy == 1840us);
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
