// Two tenants of a dispatcher, on a GPU and by a clock of the test's own.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"
#include "tests/dispatch/door_device.h"
#include "tests/dispatch/door_gpu.h"
#include "tests/unit/temporary_folder.h"

namespace smt::tests {

using runtime::dispatch::Dispatcher;
using runtime::dispatch::Form;
using runtime::dispatch::ManagedFunction;
using runtime::dispatch::ManagedStream;
using runtime::dispatch::Tenant;
using runtime::dispatch::UnmanagedPass;
using runtime::dispatch::Work;
namespace journal = runtime::journal;
namespace schedule = runtime::schedule;

inline std::shared_ptr<Tenant> tenant_of(uint32_t session, int priority = 0,
                                         const schedule::Target& target = {}) {
    auto tenant = std::make_shared<Tenant>();
    tenant->session = session;
    tenant->name = "t" + std::to_string(session);
    tenant->priority = priority;
    tenant->target = target;
    return tenant;
}

// Two tenants with a stream each, whose kernels have doors.
struct TwoTenants {
    DoorGpu gpu;
    TemporaryFolder folder;
    journal::Writer journal{folder.file("journal")};
    DoorDevice device{DoorGpu::driver()};
    Dispatcher dispatcher;
    const std::shared_ptr<Tenant> one, two;
    ManagedFunction with_door;
    std::unique_ptr<ManagedStream> first, second;

    explicit TwoTenants(std::unique_ptr<schedule::Policy> policy, int priority_of_one = 0,
                        uint64_t stress = 0, const schedule::Target& target_of_one = {})
        : dispatcher(device, journal, std::move(policy), {}),
          one(tenant_of(1, priority_of_one, target_of_one)),
          two(tenant_of(2)) {
        two->trial.stress = stress;
        with_door.function = reinterpret_cast<CUfunction>(1);
        with_door.form = Form::kDoor;
        with_door.launch_offset = DoorGpu::kOwnBytes;
        dispatcher.enter(one);
        dispatcher.enter(two);
        first = open(one);
        second = open(two);
    }
    explicit TwoTenants(const char* policy, int priority_of_one = 0)
        : TwoTenants(schedule::make_policy(policy), priority_of_one) {}
    ~TwoTenants() {
        for (ManagedStream* each : {first.get(), second.get()}) {
            each->abandon();
            end(*each);
        }
        first.reset();
        second.reset();
        dispatcher.exit(two);
        dispatcher.exit(one);
    }
    std::unique_ptr<ManagedStream> open(const std::shared_ptr<Tenant>& tenant) {
        auto stream = std::make_unique<ManagedStream>(dispatcher, tenant, DoorGpu::kProgram);
        REQUIRE(stream->open() == CUDA_SUCCESS);
        return stream;
    }
    CUresult launch(ManagedStream& stream) {
        Work work;
        work.function = &with_door;
        work.grid[0] = 1;
        work.total = 1;
        work.parameters.resize(DoorGpu::kOwnBytes);
        return stream.launch(std::move(work));
    }
    CUresult launch_unmanaged(ManagedStream& stream) {
        UnmanagedPass pass;
        const CUresult status = stream.enter({.key = 7, .name = 1}, &pass);
        if (status == CUDA_SUCCESS) gpu.enqueue_unit();
        return status == CUDA_SUCCESS ? pass.launched() : status;
    }
    // The GPU comes to the end of the stream's work, and the stream has seen that.
    void end(ManagedStream& stream) {
        for (schedule::Kernel kernel; stream.describe(&kernel);) {
            stream.mark_what_is_there();
            gpu.run();
            stream.poll();
        }
    }
    void pass(schedule::Duration time) { device.time = device.now() + time; }
};

// Spins until that is so; false: it is not within ten seconds.
template <class Condition>
bool comes(const Condition& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::yield();
    }
    return true;
}

}  // namespace smt::tests
