// Free tenants: beside others, launches begin without a decision that would change nothing (solo.h).
#include <catch2/catch.hpp>
#include <chrono>

#include "tests/dispatch/two_tenants.h"

namespace smt::runtime::dispatch {

using namespace std::chrono_literals;
using tests::comes;
using tests::TwoTenants;

// Of a hundred launches; the others come while the dispatcher's thread decides, which takes long on a busy
// machine.
constexpr uint64_t kMostAsked = 20;

TEST_CASE("free: a tenant that no decision would change begins beside others without one", "[solo]") {
    for (const bool unmanaged : {false, true}) {
        TwoTenants it("share");
        const auto begin = [&](ManagedStream& stream) {
            REQUIRE((unmanaged ? it.launch_unmanaged(stream) : it.launch(stream)) == CUDA_SUCCESS);
        };
        begin(*it.first);
        begin(*it.second);  // from now on both are known
        for (int i = 0; i < 100; ++i) {
            it.end(*it.first);
            begin(*it.first);
        }
        CHECK(it.dispatcher.begins().asked <= kMostAsked);
        CHECK(it.dispatcher.begins().unasked >= 100 - kMostAsked);
    }
}

TEST_CASE("free: the most urgent tenant begins without a decision while the others wait, and no other does",
          "[solo]") {
    TwoTenants it("priority", 1);
    it.launch(*it.first);
    it.launch(*it.second);  // which waits
    CHECK(it.one->free);
    CHECK_FALSE(it.two->free);
    for (int i = 0; i < 100; ++i) {
        it.end(*it.first);
        it.launch(*it.first);
    }
    CHECK(it.dispatcher.begins().asked <= kMostAsked);
    it.end(*it.first);
    CHECK(comes([&] {  // the other one goes on
        it.pass(1ms);
        it.dispatcher.look_again();
        return it.second->passes_through() && !it.one->free;
    }));
    CHECK_FALSE(it.one->free);
    const uint64_t before = it.dispatcher.begins().asked;
    it.launch(*it.first);  // has to stop it
    CHECK(it.dispatcher.begins().asked == before + 1);
}

// A busy host may let the dispatcher's thread look between two launches only, which makes two requests of
// one.
TEST_CASE("free: under slo launches of a request do not ask while the others wait", "[solo]") {
    constexpr int kRequests = 10;
    TwoTenants it(schedule::make_policy("slo"), 0, 0, {.p99 = 10ms});
    int waited = 0, unasked = 0;
    for (int request = 0; request < kRequests; ++request) {
        REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
        REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);
        const uint64_t before = it.dispatcher.begins().asked;
        for (int i = 0; i < 100; ++i) {
            REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
            it.pass(20us);
            it.end(*it.first);
            it.pass(10us);
        }
        unasked += it.dispatcher.begins().asked <= before + kMostAsked;
        schedule::Kernel kernel;
        waited += it.second->describe(&kernel) && kernel.state != schedule::Kernel::State::kRunning &&
                  !it.two->free;
        CHECK(comes([&] {  // the other one goes on, if it has not before
            it.pass(1ms);
            it.dispatcher.look_again();
            return it.second->passes_through() || !it.second->describe(&kernel);
        }));
        it.end(*it.second);
    }
    CHECK(waited >= 2);
    CHECK(unasked >= 2);
}

TEST_CASE("free: under slo a best-effort tenant asks once between requests", "[solo]") {
    for (const bool unmanaged : {false, true}) {
        TwoTenants it(schedule::make_policy("slo"), 0, 0, {.p99 = 10ms});
        const auto begin = [&](ManagedStream& stream) {
            REQUIRE((unmanaged ? it.launch_unmanaged(stream) : it.launch(stream)) == CUDA_SUCCESS);
        };
        begin(*it.first);
        it.end(*it.first);
        const schedule::TimePoint over = it.device.now();
        CHECK(comes([&] {  // its pause is seen
            it.pass(1ms);
            it.dispatcher.look_again();
            return it.device.now() - over > 100ms;
        }));
        for (int i = 0; i < 100; ++i) {
            begin(*it.second);
            it.end(*it.second);
        }
        CHECK(it.dispatcher.begins().unasked >= 100 - kMostAsked);
        // A stream that the policy has not told yet asks.
        const uint64_t before = it.dispatcher.begins().asked;
        const std::unique_ptr<ManagedStream> third = it.open(it.two);
        begin(*third);
        CHECK(it.dispatcher.begins().asked == before + 1);
        third->abandon();
        it.end(*third);
    }
}

TEST_CASE("free: launches of a service are counted when they begin and when they are over", "[solo]") {
    TwoTenants it(schedule::make_policy("slo"), 0, 0, {.p99 = 10ms});
    for (const bool unmanaged : {false, true}) {
        const uint64_t launched = it.one->launched, over = it.one->over;
        for (int i = 0; i < 3; ++i) {
            REQUIRE((unmanaged ? it.launch_unmanaged(*it.first) : it.launch(*it.first)) == CUDA_SUCCESS);
        }
        CHECK(it.one->launched == launched + 3);
        CHECK(it.one->over == over);
        it.end(*it.first);
        CHECK(it.one->over == over + 3);
    }
}

}  // namespace smt::runtime::dispatch
