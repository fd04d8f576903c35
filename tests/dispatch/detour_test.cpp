// Launches on fewer SMs and back: by calls of the driver. And which tenants are stopped for which.
#include "runtime/dispatch/detour.h"

#include <catch2/catch.hpp>
#include <thread>

#include "runtime/dispatch/supplies.h"
#include "runtime/dispatch/tenants.h"
#include "tests/dispatch/door_device.h"
#include "tests/unit/temporary_folder.h"

namespace smt::runtime::dispatch {

namespace {

const CUstream kHome = reinterpret_cast<CUstream>(0x70), kAway = reinterpret_cast<CUstream>(0x71);
std::vector<std::string> detour_calls;

std::string name_of(CUstream stream) { return stream == kHome ? "home" : "away"; }

DriverApi noted_driver() {
    DriverApi driver = tests::DoorGpu::driver();
    driver.cuEventRecord = [](CUevent, CUstream stream) {
        detour_calls.push_back("record " + name_of(stream));
        return CUDA_SUCCESS;
    };
    driver.cuStreamWaitEvent = [](CUstream stream, CUevent, unsigned) {
        detour_calls.push_back("wait " + name_of(stream));
        return CUDA_SUCCESS;
    };
    driver.cuStreamGetPriority = [](CUstream, int* priority) {
        *priority = -2;
        return CUDA_SUCCESS;
    };
    driver.cuGreenCtxStreamCreate = [](CUstream* stream, CUgreenCtx, unsigned, int priority) {
        *stream = kAway;
        detour_calls.push_back("make " + std::to_string(priority));
        return CUDA_SUCCESS;
    };
    return driver;
}

struct DetourBench {
    tests::DoorGpu gpu;
    tests::TemporaryFolder folder;
    journal::Writer journal{folder.file("journal")};
    tests::DoorDevice device{noted_driver()};
    Notes notes{device, journal};
    Supplies supplies{device, notes, {}};
    std::vector<CUresult> refusals;
    Detour detour{device.driver(), kHome, supplies, [this](CUresult why) { refusals.push_back(why); }};
    bool away_fails = false;

    DetourBench() { detour_calls.clear(); }
    void confine(int multiprocessors) {
        detour.confine(multiprocessors);
        detour.supply(multiprocessors, std::make_shared<SmSet>());
    }
    CUresult launch(const void* kernel = nullptr, bool confinable = true) {
        return detour.launch(kernel, confinable, [&](CUstream where) {
            detour_calls.push_back("launch " + name_of(where));
            return where == kAway && away_fails ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
        });
    }
    std::vector<std::string> calls() { return std::exchange(detour_calls, {}); }
    std::vector<std::string> launched() {
        REQUIRE(launch() == CUDA_SUCCESS);
        return calls();
    }
};

using Calls = std::vector<std::string>;
const Calls kAtHome{"launch home"}, kGoes{"record home", "wait away", "launch away"}, kStays{"launch away"},
    kReturns{"record away", "wait home"};

}  // namespace

TEST_CASE("detour: a stream stays away until something needs it at home", "[dispatch]") {
    DetourBench it;
    CHECK(it.launched() == kAtHome);
    CHECK(it.detour.wants() == 0);
    it.detour.confine(16);
    CHECK(it.detour.wants() == 16);
    CHECK(it.launched() == kAtHome);  // there is no set yet
    it.confine(16);
    CHECK(it.detour.wants() == 0);
    Calls first = kGoes;
    first.insert(first.begin(), "make -2");  // with the stream's priority
    CHECK(it.launched() == first);
    CHECK(it.launched() == kStays);
    CHECK(it.detour.where() == kAway);
    REQUIRE(it.detour.go_home() == CUDA_SUCCESS);
    CHECK(it.calls() == kReturns);
    REQUIRE(it.detour.go_home() == CUDA_SUCCESS);
    CHECK(it.calls().empty());
    CHECK(it.launched() == kGoes);
    it.detour.confine(0);
    CHECK(it.launched() == Calls{"record away", "wait home", "launch home"});
    it.detour.confine(16);
    CHECK(it.detour.wants() == 0);  // the set is kept
    CHECK(it.launched() == kGoes);
    it.detour.confine(32);
    it.detour.supply(32, nullptr);  // the driver makes none
    CHECK(it.detour.wants() == 0);
    CHECK(it.launched() == Calls{"record away", "wait home", "launch home"});
}

TEST_CASE("detour: what cannot be confined, or is refused, runs at home", "[dispatch]") {
    DetourBench it;
    it.confine(16);
    int kernel = 0, other = 0;
    REQUIRE(it.launch(&other, false) == CUDA_SUCCESS);
    CHECK(it.calls() == kAtHome);
    it.launch(&other), it.detour.go_home(), it.calls();
    it.away_fails = true;
    REQUIRE(it.launch(&kernel) == CUDA_SUCCESS);
    CHECK(it.calls() ==
          Calls{"record home", "wait away", "launch away", "record away", "wait home", "launch home"});
    CHECK(it.refusals == std::vector{CUDA_ERROR_INVALID_CLUSTER_SIZE});
    REQUIRE(it.launch(&kernel) == CUDA_SUCCESS);
    CHECK(it.calls() == kAtHome);
    it.away_fails = false;
    REQUIRE(it.launch(&other) == CUDA_SUCCESS);
    CHECK(it.calls() == kGoes);
    CHECK(it.refusals.size() == 1);
}

TEST_CASE("detour: what a thread enqueues at home is in front of what follows", "[dispatch]") {
    DetourBench it;
    it.confine(16);
    REQUIRE(it.detour.come_home() == CUDA_SUCCESS);
    CHECK(it.detour.any_at_home());
    it.launched();  // behind it
    CHECK_FALSE(it.detour.any_at_home());
    std::thread([&] { CHECK(it.detour.come_home() == CUDA_SUCCESS); }).join();
    CHECK(it.calls() == kReturns);
    CHECK(it.launched() == kGoes);  // perhaps in front of it
    REQUIRE(it.detour.left_home() == CUDA_SUCCESS);
    CHECK(it.calls().empty());
    std::thread([&] {
        CHECK(it.detour.come_home() == CUDA_SUCCESS);
        it.calls();
        std::thread([&] { it.launched(); }).join();
        CHECK(it.detour.left_home() == CUDA_SUCCESS);
        CHECK(it.calls() == Calls{"record home", "wait away"});
    }).join();
    CHECK(it.launched() == kStays);
    REQUIRE(it.detour.follow(kHome) == CUDA_SUCCESS);
    CHECK(it.calls() == Calls{"record home", "wait away"});
    REQUIRE(it.detour.follow(kAway) == CUDA_SUCCESS);
    CHECK(it.calls().empty());
}

TEST_CASE("streams of a service are more urgent than any of a tenant without a priority", "[dispatch]") {
    tests::DoorGpu gpu;
    DriverApi driver = noted_driver();
    driver.cuCtxGetStreamPriorityRange = [](int* least, int* greatest) {
        *least = 0, *greatest = -5;
        return CUDA_SUCCESS;
    };
    const tests::TemporaryFolder folder;
    journal::Writer journal(folder.file("journal"));
    tests::DoorDevice device(driver);
    Notes notes(device, journal);
    const Supplies supplies(device, notes, {});
    Tenant service, other;
    service.priority = 1;  // a target gives at least that (server/session.cpp)
    for (int asked = -5; asked <= 0; ++asked)
        CHECK(supplies.stream_priority(service, 0) < supplies.stream_priority(other, asked));
}

TEST_CASE("under a policy for targets, tenants without one are stopped for those that have one",
          "[dispatch]") {
    Tenants tenants;
    std::vector<Tenants::Pointer> all;
    for (uint32_t session = 1; session <= 3; ++session) {
        all.push_back(std::make_shared<Tenant>());
        all.back()->session = session;
        tenants.enter(all.back());
    }
    const auto weigh = [&](Tenants::Stops stops) {
        tenants.weigh(stops, {}, [](const Tenant&) {});
        std::string text;
        for (const Tenants::Pointer& each : all)
            text += each->preemptible ? "p" : each->preemptor ? "s" : "-";
        return text;
    };
    CHECK(weigh(Tenants::Stops::kBestEffort) == "---");
    all[0]->priority = 5;
    all[1]->target.slowdown = 1.1;
    for (int i = 0; i < 7; ++i) all[1]->activity.launch();
    CHECK(weigh(Tenants::Stops::kBestEffort) == "psp");
    std::vector<schedule::Service> services;
    tenants.list_services(services);
    REQUIRE(services.size() == 1);
    CHECK(services[0].session == 2);
    CHECK(services[0].launches == 7);
    CHECK(weigh(Tenants::Stops::kLessUrgent) == "spp");
    CHECK(weigh(Tenants::Stops::kNone) == "---");
    all[0]->target.p99 = all[2]->target.p99 = std::chrono::milliseconds(1);
    CHECK(weigh(Tenants::Stops::kBestEffort) == "---");  // services do not restrict each other
    services.clear();
    tenants.list_services(services);
    CHECK(services.empty());
}

}  // namespace smt::runtime::dispatch
