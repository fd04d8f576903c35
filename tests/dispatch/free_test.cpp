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

// An error of the launch would mean that it had no effect, and it would be executed again.
TEST_CASE("a launch whose marker finds the context lost has begun", "[solo]") {
    TwoTenants it("priority", 1);
    it.launch(*it.first);
    it.launch(*it.second);  // which waits
    it.end(*it.first);
    it.one->preemptor = true;  // the end of its launches is waited for
    it.gpu.lost = true;
    CHECK(it.launch(*it.first) == CUDA_SUCCESS);
    it.gpu.lost = false;
    schedule::Kernel kernel;
    CHECK(it.first->describe(&kernel));
}

// However rarely the dispatcher's thread looks: the streams see pauses themselves.
TEST_CASE("free: under slo launches of a request do not ask while the others wait", "[solo]") {
    constexpr int kRequests = 8;  // at level 0
    TwoTenants it(schedule::make_policy("slo"), 0, 0, {.p99 = 10ms});
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
        CHECK(it.dispatcher.begins().asked <= before + kMostAsked);
        schedule::Kernel kernel;
        REQUIRE(it.second->describe(&kernel));
        CHECK(kernel.state == schedule::Kernel::State::kWaiting);
        CHECK_FALSE(it.two->free);
        CHECK(comes([&] {  // the other one goes on
            it.pass(1ms);
            it.dispatcher.look_again();
            return it.second->passes_through();
        }));
        it.end(*it.second);
    }
}

// Nothing can be resumed until the GPU is past a stop. That it is comes without another notice.
TEST_CASE("free: under slo a tenant whose stop outlasts the request goes on when it has stopped", "[solo]") {
    TwoTenants it(schedule::make_policy("slo"), 0, 0, {.p99 = 10ms});
    const auto state = [&] {
        schedule::Kernel kernel;
        REQUIRE(it.second->describe(&kernel));
        return kernel.state;
    };
    const auto comes_in_time = [&](const auto& condition) {
        return comes([&] {
            it.pass(1ms);
            it.dispatcher.look_again();
            return condition();
        });
    };
    for (int request = 0; it.one->attainment.multiprocessors < 1; ++request) {
        REQUIRE(request < 20);
        REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
        REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);
        it.pass(2ms);
        it.end(*it.first);
        REQUIRE(comes_in_time([&] { return it.second->passes_through(); }));
        it.end(*it.second);
        REQUIRE(comes_in_time([&] { return it.one->attainment.state >= 0; }));
    }
    REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
    for (int i = 0; i < 2; ++i) REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);
    REQUIRE(it.gpu.launches_away > 0);  // on fewer multiprocessors, of which the request does not wait
    REQUIRE(comes_in_time([&] { return state() == schedule::Kernel::State::kStopping; }));  // it is late
    for (schedule::Kernel kernel; it.first->describe(&kernel); it.first->poll()) it.gpu.finish_program();
    const schedule::TimePoint over = it.device.now();
    // Until slo asks for no further decision.
    CHECK(comes_in_time([&] { return it.pass(50ms), it.device.now() - over > 5s; }));
    CHECK(state() == schedule::Kernel::State::kStopping);
    it.gpu.run();
    CHECK(comes_in_time([&] { return it.second->passes_through(); }));
    it.end(*it.second);
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
        const uint64_t launched = it.one->activity.launches(), over = it.one->activity.over();
        for (int i = 0; i < 3; ++i) {
            REQUIRE((unmanaged ? it.launch_unmanaged(*it.first) : it.launch(*it.first)) == CUDA_SUCCESS);
        }
        CHECK(it.one->activity.launches() == launched + 3);
        CHECK(it.one->activity.over() == over);
        it.end(*it.first);
        CHECK(it.one->activity.over() == over + 3);
    }
}

}  // namespace smt::runtime::dispatch
