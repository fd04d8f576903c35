// What a takeover writes and reads, and which tenants are refused.
#include <catch2/catch.hpp>
#include <vector>

#include "runtime/protocol/state.h"
#include "runtime/server/takeover/offences.h"

namespace {

using namespace smt::protocol;
using smt::runtime::server::Offences;

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
    taken.restore(in);
    CHECK(taken.refused_seconds("bad", now) == 3600);
    CHECK(taken.count("bad") == 45);
    // An hour later they are forgotten.
    CHECK(taken.refused_seconds("bad", now + 61 * kMinute) == 0);
}

}  // namespace
