// Which tenants are kept apart from others, and whose turn it is.
#include <catch2/catch.hpp>

#include "runtime/server/quarantine_turns.h"
#include "runtime/server/takeover/quarantine_list.h"

using namespace smt;
using namespace smt::runtime::server;
using namespace std::chrono_literals;
using Why = QuarantineList::Why;

namespace {

constexpr uint64_t kSecond = QuarantineList::kSecond;

}  // namespace

TEST_CASE("quarantine: a fault of one tenant is its own, one of several makes all suspects") {
    QuarantineList list;
    list.fault({"a", "b"}, 0);
    CHECK(list.why("a", kSecond) == Why::kSuspected);
    CHECK(list.why("b", kSecond) == Why::kSuspected);
    CHECK(list.why("c", kSecond) == Why::kNone);
    CHECK(list.why("a", QuarantineList::kSuspected) == Why::kNone);
    list.fault({"a"}, 2 * kSecond);
    CHECK(list.why("a", 3 * kSecond) == Why::kBlamed);
    CHECK(list.why("b", 3 * kSecond) == Why::kNone);
    list.fault({"a", "c"}, 4 * kSecond);  // it was not held apart: that does not make it less
    CHECK(list.why("a", 5 * kSecond) == Why::kBlamed);
    CHECK(list.why("a", 2 * kSecond + QuarantineList::kBlamed) == Why::kNone);
    list.fault({"d", "e"}, 5 * kSecond);
    list.fault({"d"}, 6 * kSecond);  // c and e were no suspects together
    CHECK(list.why("e", 7 * kSecond) == Why::kNone);
    list.fault({}, 6 * kSecond);
    CHECK(list.why("c", 7 * kSecond) == Why::kSuspected);
}

TEST_CASE("quarantine: the list goes on in another process") {
    QuarantineList list, other;
    list.fault({"a"}, 0);
    list.fault({"b", "c"}, 0);
    protocol::StateWriter out;
    list.save(out);
    const std::string bytes = out.all();
    protocol::Reader in(bytes.data(), bytes.size());
    other.restore(in, 0);
    CHECK(in.good());
    CHECK(other.why("a", QuarantineList::kSuspected) == Why::kBlamed);
    CHECK(other.why("b", kSecond) == Why::kSuspected);
    protocol::Reader cut(bytes.data(), bytes.size() / 2);
    QuarantineList half;
    half.restore(cut, 0);
    CHECK(!cut.good());
}

TEST_CASE("quarantine: a list of before the machine started again says nothing") {
    QuarantineList list, other;
    list.fault({"a"}, 1000 * kSecond);
    protocol::StateWriter out;
    list.save(out);
    const std::string bytes = out.all();
    protocol::Reader in(bytes.data(), bytes.size());
    other.restore(in, kSecond);
    CHECK(other.why("a", 2 * kSecond) == Why::kNone);
}

TEST_CASE("quarantine: groups with work take turns, as long as they have programs at work") {
    QuarantineTurns turns;
    const QuarantineTurns::Clock::time_point begin{};
    const auto at = [&](std::chrono::milliseconds time) { return begin + 1h + time; };
    CHECK(turns.next({{"", 2}, {"a", 1}}, at(0ms)) == "a");  // the turn of before is long over
    CHECK(turns.next({{"", 2}, {"a", 1}}, at(49ms)) == "a");
    CHECK(turns.next({{"", 2}, {"a", 1}}, at(50ms)) == "");
    CHECK(turns.next({{"", 2}, {"a", 1}}, at(149ms)) == "");
    CHECK(turns.next({{"", 2}, {"a", 1}, {"b", 0}}, at(150ms)) == "a");
    CHECK(turns.next({{"", 2}, {"a", 1}, {"b", 1}}, at(200ms)) == "b");
    CHECK(turns.next({{"", 0}, {"a", 0}, {"b", 1}}, at(300ms)) == "b");  // nothing else has work
    CHECK(turns.next({{"", 0}, {"a", 1}, {"b", 0}}, at(301ms)) == "a");  // its turn ends early
    CHECK(turns.next({{"", 0}, {"a", 0}, {"b", 0}}, at(400ms)) == "a");
    CHECK(turns.next({{"", 1}, {"b", 1}}, at(401ms)) == "");  // it has left
    turns.began(at(431ms));                                   // so long the others took to come to rest
    CHECK(turns.next({{"", 1}, {"b", 1}}, at(480ms)) == "");
    CHECK(turns.next({{"", 1}, {"b", 1}}, at(481ms)) == "b");
}
