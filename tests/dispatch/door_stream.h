// Streams with doors on the test's own GPU (door_gpu.h), under a dispatcher that leaves decisions to the
// test.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"
#include "tests/dispatch/door_device.h"
#include "tests/dispatch/door_gpu.h"
#include "tests/unit/temporary_folder.h"

namespace smt::tests {

// The program's stream. What is with the GPU when the test ends is stopped, and waited for.
struct StreamWithDoors {
    using ManagedFunction = runtime::dispatch::ManagedFunction;
    using Work = runtime::dispatch::Work;

    DoorGpu gpu;
    TemporaryFolder folder;
    runtime::journal::Writer journal{folder.file("journal")};
    DoorDevice device;
    runtime::dispatch::Dispatcher dispatcher;
    std::shared_ptr<runtime::dispatch::Tenant> tenant = std::make_shared<runtime::dispatch::Tenant>();
    ManagedFunction with_door;
    std::unique_ptr<runtime::dispatch::ManagedStream> stream;

    explicit StreamWithDoors(const DriverApi& driver = DoorGpu::driver(),
                             const runtime::dispatch::Settings& settings = {})
        : device(driver), dispatcher(device, journal, std::make_unique<Undecided>(), settings) {
        with_door.function = reinterpret_cast<CUfunction>(1);
        with_door.form = runtime::dispatch::Form::kDoor;
        with_door.launch_offset = DoorGpu::kOwnBytes;
        tenant->preemptible = true;
        stream = std::make_unique<runtime::dispatch::ManagedStream>(dispatcher, tenant, DoorGpu::kProgram);
        REQUIRE(stream->open() == CUDA_SUCCESS);
    }
    ~StreamWithDoors() {
        stream->abandon();
        gpu.run();
        stream->poll();
    }

    // A launch of the kernel, whose units are named so.
    static Work work_of(ManagedFunction& function, uint32_t name, uint32_t blocks) {
        Work work;
        work.function = &function;
        work.grid[0] = blocks;
        work.total = blocks;
        work.parameters.resize(DoorGpu::kOwnBytes);
        std::memcpy(work.parameters.data(), &name, sizeof name);
        return work;
    }
    // launch 0: there is none.
    runtime::schedule::Kernel first() {
        runtime::schedule::Kernel kernel;
        if (!stream->describe(&kernel)) kernel.launch = 0;
        return kernel;
    }
    // The GPU comes to the end of all that it has.
    runtime::schedule::Kernel come_to_end() {
        stream->mark_what_is_there();
        gpu.run();
        stream->poll();
        return first();
    }
};

// Kernels in it.
struct DoorStream : StreamWithDoors {
    ManagedFunction persistent, failing;
    bool names = false;  // launches have names in the journal

    explicit DoorStream(runtime::schedule::Duration ahead = {}, bool gpu_time = false)
        : StreamWithDoors(DoorGpu::driver(), {.gpu_time = gpu_time, .ahead = ahead}) {
        persistent.function = reinterpret_cast<CUfunction>(2);
        persistent.launch_offset = DoorGpu::kOwnBytes;
        failing.function = DoorGpu::kFails;
        failing.form = runtime::dispatch::Form::kDoor;
        failing.launch_offset = DoorGpu::kOwnBytes;
    }

    CUresult launch(ManagedFunction& function, uint32_t name, uint32_t blocks, uint32_t unit = 1) {
        Work work = work_of(function, name, blocks);
        work.unit = unit;
        if (names) work.entry.name = name + 1;
        return stream->launch(std::move(work));
    }
    // `count` launches of that many blocks, named from 0, with the driver.
    void begin(uint32_t count, uint32_t blocks, uint32_t unit = 1) {
        for (uint32_t name = 0; name < count; ++name)
            REQUIRE(launch(with_door, name, blocks, unit) == CUDA_SUCCESS);
        REQUIRE(stream->pass_through() == CUDA_SUCCESS);
    }
};

inline std::vector<DoorGpu::Unit> each_once(uint32_t launches, uint32_t units) {
    std::vector<DoorGpu::Unit> all;
    for (uint32_t name = 0; name < launches; ++name)
        for (uint32_t unit = 0; unit < units; ++unit) all.emplace_back(name, unit);
    return all;
}

}  // namespace smt::tests
