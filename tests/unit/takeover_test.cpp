// What a takeover writes and reads, and which tenants are refused.
#include <fcntl.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "runtime/protocol/state.h"
#include "runtime/server/memory/watched_constants.h"
#include "runtime/server/takeover/marks.h"
#include "runtime/server/takeover/offences.h"

namespace {

using namespace smt::protocol;
using smt::runtime::server::Marks;
using smt::runtime::server::Offences;
using smt::runtime::server::WatchedConstants;

TEST_CASE("takeover: a state is read as it was written, and no further", "[takeover]") {
    StateWriter out;
    out.part(7);
    out.scalar<uint32_t>(3);
    out.list(std::vector<uint16_t>{1, 2, 3});
    out.text("alice");
    out.list(std::vector<uint64_t>{});
    Reader in(out.all().data(), out.all().size());
    REQUIRE(take_part(in, 7));
    CHECK(in.scalar<uint32_t>() == 3);
    CHECK(take_list<uint16_t>(in) == std::vector<uint16_t>{1, 2, 3});
    CHECK(take_text(in) == "alice");
    CHECK(take_list<uint64_t>(in).empty());
    CHECK(in.good());
    CHECK(in.left() == 0);
    CHECK(take_text(in).empty());
    CHECK(!in.good());
    Reader other(out.all().data(), out.all().size());
    CHECK(!take_part(other, 8));
}

// The standby's: of the same file.
std::unique_ptr<Marks> of_another(const Marks& marks) {
    return Marks::open(fcntl(marks.file(), F_DUPFD_CLOEXEC, 0));
}

TEST_CASE("takeover: marks say when a state describes its session", "[takeover]") {
    const std::unique_ptr<Marks> marks = Marks::make();
    REQUIRE(marks);
    const std::unique_ptr<Marks> seen = of_another(*marks);
    REQUIRE(seen);
    Marks::Lane* const lane = marks->lane(3);
    REQUIRE(lane);
    lane->go_on_at(640);
    const uint64_t described = marks->changes();
    CHECK(seen->why_not(described).empty());
    CHECK(seen->lane(3)->over.load() == 640);

    lane->begin(704);  // a record that enqueues work
    CHECK(seen->why_not(described) == "a call of it was under way");
    lane->used(2);
    lane->done();
    CHECK(seen->why_not(described) == "work of it was under way on the GPU, or may have been");
    CHECK(seen->uses() == 2);
    marks->rests(1);
    CHECK_FALSE(seen->why_not(described).empty());
    marks->rests(2);
    marks->rests(1);  // another thread has looked earlier
    CHECK(seen->why_not(described).empty());
    CHECK(seen->lane(3)->over.load() == 704);

    marks->changed();
    CHECK(seen->why_not(described).starts_with("it had made or freed something"));
    CHECK(seen->why_not(marks->changes()).empty());
    marks->control().begin(1);
    CHECK_FALSE(seen->why_not(marks->changes()).empty());
    marks->control().done();
    CHECK(seen->why_not(marks->changes()).empty());

    CHECK(marks->lane(Marks::kMostLanes - 1));
    CHECK_FALSE(marks->lane(Marks::kMostLanes));
    CHECK(seen->why_not(marks->changes()) == "it had too many threads");
}

TEST_CASE("takeover: marks of another size are none", "[takeover]") {
    const int file = memfd_create("marks", MFD_CLOEXEC);
    REQUIRE(file >= 0);
    CHECK_FALSE(Marks::open(file));
    CHECK_FALSE(Marks::open(-1));
}

TEST_CASE("takeover: a tenant that faults again and again is refused for longer and longer", "[takeover]") {
    constexpr uint64_t kMinute = 60 * Offences::kSecond;
    Offences offences;
    uint64_t now = 100 * kMinute;
    for (int i = 0; i < 3; ++i) {
        offences.add("bad", now);
        CHECK(offences.refused_seconds("bad", now) == 0);
    }
    offences.add("bad", now);
    CHECK(offences.refused_seconds("bad", now) == 15);
    CHECK(offences.refused_seconds("bad", now + 14 * Offences::kSecond) == 1);
    CHECK(offences.refused_seconds("bad", now + 15 * Offences::kSecond) == 0);
    CHECK(offences.refused_seconds("good", now) == 0);
    now += kMinute;
    offences.add("bad", now);
    CHECK(offences.refused_seconds("bad", now) == 30);
    for (int i = 0; i < 40; ++i) offences.add("bad", now);
    CHECK(offences.refused_seconds("bad", now) == 3600);

    StateWriter out;
    offences.save(out);
    Reader in(out.all().data(), out.all().size());
    Offences taken;
    taken.restore(in, now);
    CHECK(taken.refused_seconds("bad", now) == 3600);
    CHECK(taken.count("bad") == 45);
    // An hour later they are forgotten.
    CHECK(taken.refused_seconds("bad", now + 61 * kMinute) == 0);
}

TEST_CASE("takeover: a fault of which it is not known whose it was counts for no tenant", "[takeover]") {
    Offences offences;
    for (int i = 0; i < 5; ++i) offences.add("", Offences::kSecond);
    CHECK(offences.count("") == 0);
    CHECK(offences.refused_seconds("", Offences::kSecond) == 0);
}

TEST_CASE("takeover: a constant is as its copy if all that met it was followed", "[takeover]") {
    WatchedConstants constants;
    const int one = 1, two = 2;
    CHECK_FALSE(constants.meet(0x1000, 4));
    REQUIRE(constants.add({0x1000, 64, 0x1000, 0x9000}, &one));
    REQUIRE(constants.add({0x2000, 16, 0x7000, 0x9100}, &two));  // moved by a takeover
    for (const uint64_t taken : {0x0ff0ull, 0x1000ull, 0x103full, 0x200full})
        CHECK_FALSE(constants.add({taken, 0x20, taken, 0x9200}, &one));
    CHECK_FALSE(constants.find(0xfff));
    CHECK_FALSE(constants.find(0x1040));
    REQUIRE(constants.find(0x200f));
    CHECK(constants.find(0x200f)->actual == 0x7000);
    CHECK_FALSE(constants.find(0x7000));
    CHECK(constants.all_followed());
    CHECK(constants.meet(0x1030, 16));
    CHECK_FALSE(constants.all_followed());
    constants.follow();
    CHECK(constants.all_followed());
    constants.forget(&one);
    CHECK_FALSE(constants.meet(0x1000, 4));
    CHECK(constants.all_followed());
    // Beyond its end it is no access to it, and counts nevertheless.
    CHECK_FALSE(constants.meet(0x2008, 9));
    CHECK_FALSE(constants.all_followed());
}

TEST_CASE("takeover: a kernel that has a constant's address may write to it", "[takeover]") {
    using Named = WatchedConstants::Named;
    WatchedConstants constants;
    const uint64_t parameters[] = {5, 0x1004, 0x2000};
    const char* const bytes = reinterpret_cast<const char*>(parameters);
    CHECK(constants.meet_in(bytes, sizeof parameters) == Named::kNone);
    REQUIRE(constants.add({0x1000, 64, 0x1000, 0x9000}, &constants));
    CHECK(constants.meet_in(bytes, 12) == Named::kNone);  // half of the address
    CHECK(constants.all_followed());
    CHECK(constants.meet_in(bytes, 16) == Named::kHere);
    CHECK_FALSE(constants.all_followed());
    REQUIRE(constants.add({0x2000, 64, 0x3000, 0x9000}, &constants));
    CHECK(constants.meet_in(bytes, sizeof parameters) == Named::kMoved);
}

}  // namespace
