// Launches on fewer SMs and back: by calls of the driver. And which tenants are stopped for which.
#include "runtime/dispatch/detour.h"

#include <catch2/catch.hpp>

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
    SideStream side{device.driver(), supplies.sm_sets()};
    Detour detour{side, supplies};

    DetourBench() { detour_calls.clear(); }
    bool leaves() {
        CUstream where = nullptr;
        REQUIRE(detour.leave(kHome, &where) == CUDA_SUCCESS);
        detour_calls.push_back("launch " + name_of(where));
        REQUIRE(detour.come_back(kHome, where) == CUDA_SUCCESS);
        return where != kHome;
    }
};

}  // namespace

TEST_CASE("detour: there and back, behind what is before and in front of what follows", "[dispatch]") {
    DetourBench it;
    CHECK_FALSE(it.leaves());
    CHECK(it.detour.wants() == 0);
    it.detour.confine(16);
    CHECK(it.detour.wants() == 16);
    CHECK_FALSE(it.leaves());  // there is no set yet
    it.detour.supply(16, std::make_shared<SmSet>());
    CHECK(it.detour.wants() == 0);
    detour_calls.clear();
    CHECK(it.leaves());
    const std::vector<std::string> once{"record home", "wait away", "launch away", "record away",
                                        "wait home"};
    std::vector<std::string> expected = once;
    expected.insert(expected.begin(), "make -2");  // with the stream's priority
    CHECK(detour_calls == expected);
    detour_calls.clear();
    CHECK(it.leaves());
    CHECK(detour_calls == once);
    it.detour.confine(0);
    detour_calls.clear();
    CHECK_FALSE(it.leaves());
    CHECK(detour_calls == std::vector<std::string>{"launch home"});
    it.detour.confine(16);
    CHECK(it.detour.wants() == 0);  // the set is kept
    CHECK(it.leaves());
    it.detour.confine(32);
    CHECK(it.detour.wants() == 32);
    CHECK_FALSE(it.leaves());
    it.detour.supply(32, nullptr);  // the driver makes none
    CHECK(it.detour.wants() == 0);
    CHECK_FALSE(it.leaves());
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
    all[1]->launched = 7;
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
