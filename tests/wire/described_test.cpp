// Sessions whose state is written while they go on (runtime/server/takeover/session_described.cpp).
#include <catch2/catch.hpp>

#include "runtime/protocol/state.h"
#include "runtime/server/lane_gate.h"
#include "runtime/server/memory/tenant_memory.h"
#include "tests/wire/server.h"

namespace smt::tests {

using namespace protocol;
using runtime::server::LaneGate;

TEST_CASE("lanes stand until a state is written, also those of a session that ends", "[described]") {
    TestSession client;
    TestLane lane = client.open_lane();
    LaneGate& gate = client.session().gate();
    gate.close(LaneGate::kDescribed);
    gate.close(LaneGate::kOutOfTurn);
    client.session().poison(CUDA_ERROR_ILLEGAL_ADDRESS, "a test");
    CHECK_FALSE(gate.keeps_back());
    CHECK(gate.closed(LaneGate::kDescribed));
    const uint64_t before = lane.header().head.load();
    lane.post(Op::kMemFree, Address{0});
    await([&] { return gate.standing() == 1; }, "the lane stands");
    CHECK(lane.header().head.load() == before);
    gate.open(LaneGate::kDescribed);
    lane.await_reached(lane.position());
}

TEST_CASE("a chunk that has left since the session was asked makes a state that is out of date",
          "[described]") {
    TestSession client;
    TestLane lane = client.open_lane();
    REQUIRE(lane.call(Op::kMemAlloc, MemAlloc{5 << 20, 0, 0}).status == CUDA_SUCCESS);
    StateWriter out;  // no chunk is a keeper's here, as if each had left a moment before
    CHECK_NOTHROW(client.session().memory().save(out));
    CHECK_FALSE(out.all().empty());
}

TEST_CASE("idle memory that others take changes the state that was written", "[described]") {
    runtime::server::Server& server = TestServer::get().server();
    REQUIRE(TestServer::get().device().enter_thread() == CUDA_SUCCESS);
    server.expect_takeover([] { return false; }, [] { return false; }, [] {});
    {
        TestSession client;
        TestLane lane = client.open_lane();
        const runtime::server::Marks* const marks = client.session().marks();
        REQUIRE(marks);
        for (const uint64_t bytes : {uint64_t{5} << 20, uint64_t{1} << 10}) {  // a chunk, and a part of one
            const Reply made = lane.call(Op::kMemAlloc, MemAlloc{bytes, 0, 0});
            REQUIRE(made.status == CUDA_SUCCESS);
            REQUIRE(lane.call(Op::kMemFree, Address{made.as<MemAllocated>().address}).status == CUDA_SUCCESS);
            await([&] { return marks->stands(); }, "the records are over");
            const uint64_t written = marks->changes();
            client.session().memory().trim();
            CHECK(marks->changes() > written);
            const uint64_t trimmed = marks->changes();
            client.session().memory().trim();  // there is nothing more
            CHECK(marks->changes() == trimmed);
        }
    }
    server.expect_takeover({}, {}, {});
}

}  // namespace smt::tests
