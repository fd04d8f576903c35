// Sessions of a suspended tenant: their records wait, and their end does not.
#include <catch2/catch.hpp>
#include <chrono>

#include "runtime/server/memory/tenant_memory.h"
#include "tests/wire/server.h"

namespace smt::tests {
namespace {

using namespace protocol;
using namespace std::chrono_literals;

constexpr uint64_t kHeldBytes = 5 << 20;

runtime::server::Suspension& suspension() {
    REQUIRE(TestServer::get().device().enter_thread() == CUDA_SUCCESS);
    return TestServer::get().server().suspension();
}

}  // namespace

TEST_CASE("records of a suspended session wait until it is resumed", "[suspended]") {
    TestSession client;
    TestLane lane = client.open_lane();
    [[maybe_unused]] const TestLane idle = client.open_lane();  // stands, too
    const Reply allocated = lane.call(Op::kMemAlloc, MemAlloc{kHeldBytes, 0, 0});
    REQUIRE(allocated.status == CUDA_SUCCESS);
    for (int i = 0; i < 3; ++i) {
        const SuspendReply away = suspension().suspend("test", 60s);
        REQUIRE(away.ok);
        CHECK(away.moved_bytes >= kHeldBytes);
        CHECK(client.session().gate().standing() == 2);
        CHECK(client.session().device_bytes() == 0);
        const uint64_t before = lane.header().head.load();
        lane.post(Op::kMemFree, Address{0});  // with an error
        CHECK(lane.header().head.load() == before);
        CHECK_FALSE(suspension().suspend("test", 60s).ok);
        const SuspendReply here = suspension().resume("test");
        REQUIRE(here.ok);
        CHECK(here.moved_bytes == away.moved_bytes);
        lane.await_reached(lane.position());
        CHECK_FALSE(suspension().resume("test").ok);
    }
    CHECK(client.session().device_bytes() >= kHeldBytes);
    CHECK(lane.call(Op::kMemFree, Address{allocated.as<MemAllocated>().address}).status == CUDA_SUCCESS);
}

TEST_CASE("a client that dies while it is suspended leaves nothing", "[suspended]") {
    size_t free_before = 0, free_after = 0, total = 0;
    REQUIRE(TestServer::get().device().enter_thread() == CUDA_SUCCESS);
    const DriverApi& driver = TestServer::get().device().driver();
    driver.cuMemGetInfo_v2(&free_before, &total);
    {
        TestSession client;
        TestLane lane = client.open_lane();
        REQUIRE(lane.call(Op::kMemAlloc, MemAlloc{kHeldBytes, 0, 0}).status == CUDA_SUCCESS);
        REQUIRE(suspension().suspend("test", 60s).ok);
        lane.post(Op::kMemFree, Address{0});
        client.leave();
    }
    driver.cuMemGetInfo_v2(&free_after, &total);
    CHECK(free_after == free_before);
    CHECK_FALSE(suspension().resume("test").ok);
}

}  // namespace smt::tests
