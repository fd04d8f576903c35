// Suspended tenants: what they have on the GPU stops, their threads wait, and policies do not see them.
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>

#include "tests/dispatch/two_tenants.h"

namespace smt::runtime::dispatch {

using tests::comes;
using tests::TwoTenants;

namespace {

// The GPU does nothing of the kernels before the stop is issued, and then what it still has to.
bool comes_to_rest(TwoTenants& it) {
    uint32_t runs = 0;
    return comes([&] {
        if (it.dispatcher.at_rest(*it.two, &runs)) return true;
        schedule::Kernel kernel;
        const bool stops = it.second->describe(&kernel) && kernel.state == schedule::Kernel::State::kStopping;
        it.gpu.run(stops ? ~0ull : 0);
        return false;
    });
}

bool ends(TwoTenants& it, ManagedStream& stream) {
    return comes([&] {
        stream.mark_what_is_there();
        it.gpu.run();
        stream.poll();
        it.dispatcher.look_again();
        schedule::Kernel kernel;
        return !stream.describe(&kernel);
    });
}

// First come, first served, and keeps whose kernels it is told of.
class Listing final : public schedule::Policy {
public:
    explicit Listing(std::atomic<uint32_t>& sessions)  // a bit each
        : Policy({"listing", Stops::kAny}), sessions_(sessions) {}
    void want(const schedule::Snapshot& snapshot, schedule::TimePoint, schedule::Wanted& wanted) override {
        for (const schedule::Kernel& kernel : snapshot.kernels) {
            sessions_.fetch_or(1u << kernel.session);
            wanted.run(kernel, "it came");
        }
    }

private:
    std::atomic<uint32_t>& sessions_;
};

}  // namespace

TEST_CASE("suspended: a launch stops, waits whatever the policy says, and goes on", "[suspended]") {
    const char* policy = GENERATE("fifo", "priority", "fair", "share", "hpf", "greedy");
    TwoTenants it(policy);
    REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);
    it.dispatcher.suspend(it.two);
    uint32_t runs = 7;
    CHECK_FALSE(it.dispatcher.at_rest(*it.two, &runs));  // the GPU has not looked yet
    CHECK(runs == 0);                                    // its name in the journal
    REQUIRE(comes_to_rest(it));
    CHECK(it.gpu.ran.empty());
    CHECK_FALSE(it.second->passes_through());
    // another tenant's work comes and goes, and decisions are made
    for (int i = 0; i < 10; ++i) {
        REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
        REQUIRE(ends(it, *it.first));
        it.pass(std::chrono::seconds(1));  // no aging either
        it.dispatcher.look_again();
    }
    CHECK(it.gpu.ran.size() == 10);
    it.dispatcher.suspend(it.two);  // again: no effect
    it.dispatcher.resume(it.two);
    it.dispatcher.resume(it.two);
    REQUIRE(ends(it, *it.second));
    CHECK(it.gpu.ran.size() == 11);
}

TEST_CASE("suspended: a launch that comes late stops, too", "[suspended]") {
    TwoTenants it("fifo");
    it.dispatcher.suspend(it.two);
    REQUIRE(comes_to_rest(it));
    REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);
    REQUIRE(comes_to_rest(it));
    CHECK(it.gpu.ran.empty());
    it.dispatcher.resume(it.two);
    REQUIRE(ends(it, *it.second));
    CHECK(it.gpu.ran.size() == 1);
}

TEST_CASE("suspended: what cannot be stopped ends first", "[suspended]") {
    TwoTenants it("fifo");
    REQUIRE(it.launch_unmanaged(*it.second) == CUDA_SUCCESS);
    it.dispatcher.suspend(it.two);
    uint32_t runs = 0;
    CHECK_FALSE(it.dispatcher.at_rest(*it.two, &runs));
    CHECK(runs == 1);
    it.gpu.run();
    REQUIRE(comes_to_rest(it));
    it.dispatcher.resume(it.two);
}

TEST_CASE("suspended: a thread that waits for a stopped launch stays, until the tenant is resumed or gone",
          "[suspended]") {
    const bool resumed = GENERATE(true, false);
    TwoTenants it("fair");  // launches are preemptible: guard() waits for them
    REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);
    it.dispatcher.suspend(it.two);
    REQUIRE(comes_to_rest(it));
    CUresult status = CUDA_ERROR_UNKNOWN;
    std::thread waits([&] { status = it.second->guard(); });
    CHECK(comes([&] { return it.two->parking.threads() == 1; }));
    if (resumed) {
        it.dispatcher.resume(it.two);
        CHECK(ends(it, *it.second));
    } else {
        it.second->abandon();
    }
    waits.join();
    CHECK((status == CUDA_SUCCESS) == resumed);
    CHECK(it.two->parking.threads() == 0);
    CHECK(it.gpu.ran.size() == (resumed ? 1 : 0));
    it.dispatcher.resume(it.two);
}

TEST_CASE("suspended: no policy is told of a launch that waits for it", "[suspended]") {
    constexpr uint32_t kTwo = 1u << 2;
    std::atomic<uint32_t> told{0};
    TwoTenants it(std::make_unique<Listing>(told));
    REQUIRE(it.launch(*it.second) == CUDA_SUCCESS);
    CHECK((told & kTwo) != 0);
    told = 0;
    it.dispatcher.suspend(it.two);  // which asks
    REQUIRE(comes_to_rest(it));
    REQUIRE(it.launch(*it.first) == CUDA_SUCCESS);
    REQUIRE(ends(it, *it.first));
    CHECK((told & kTwo) == 0);
    it.dispatcher.resume(it.two);
    CHECK((told & kTwo) != 0);
    CHECK(ends(it, *it.second));
}

TEST_CASE("suspended: a tenant is no reason to stop others", "[suspended]") {
    TwoTenants it("priority", -1);  // two may stop one
    CHECK(it.one->preemptible);
    CHECK(it.two->preemptor);
    it.dispatcher.suspend(it.two);
    CHECK_FALSE(it.one->preemptible);
    CHECK(it.dispatcher.alone() != 0);
    it.dispatcher.resume(it.two);
    CHECK(it.one->preemptible);
    CHECK(it.dispatcher.alone() == 0);
}

TEST_CASE("a tenant with a limit for its kernels is watched until its work has ended", "[tenants]") {
    Tenants tenants;
    const auto limited = std::make_shared<Tenant>(), other = std::make_shared<Tenant>();
    limited->kernel_limit = std::chrono::seconds(1);
    tenants.enter(other);
    CHECK_FALSE(tenants.watched());
    tenants.enter(limited);
    CHECK(tenants.watched());
    tenants.exit(limited);  // as for a suspension
    tenants.enter(limited);
    tenants.exit(limited);
    CHECK(tenants.watched());  // its program was killed, and its kernel still runs
    CHECK(tenants.alone() != 0);
    tenants.exit(other);
    tenants.ended(other);
    CHECK(tenants.watched());
    tenants.ended(limited);
    CHECK_FALSE(tenants.watched());
}

}  // namespace smt::runtime::dispatch
