// What streams with doors are tested on: a device with the driver and the clock of the test, and a policy
// that leaves all decisions to the test.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include "runtime/device/device.h"
#include "runtime/schedule/policy.h"
#include "tests/dispatch/door_gpu.h"

namespace smt::tests {

class DoorDevice final : public runtime::device::Device {
public:
    explicit DoorDevice(const DriverApi& driver) {
        driver_ = driver;
        properties_.multiprocessors = DoorGpu::kSms;
    }
    CUresult enter_thread(runtime::device::Guest*, uint32_t) override { return CUDA_SUCCESS; }
    Clock::time_point now() const override { return time.load(); }

    void set_loads_wait() { properties_.loads_wait = true; }
    // The dispatcher's thread rests until it is disturbed, however long that takes; `sleeps`: it does.
    void rest(std::unique_lock<std::mutex>& lock, Clock::time_point until, bool due) override {
        if (rests_long) sleeps = true, until = Clock::now() + std::chrono::hours(1);
        Device::rest(lock, until, due);
        sleeps = false;
    }
    std::atomic<bool> rests_long{false}, sleeps{false};

    std::atomic<Clock::time_point> time{Clock::time_point{} + std::chrono::hours(1)};
};

class Undecided final : public runtime::schedule::Policy {
public:
    Undecided() : Policy({"none", Stops::kAny}) {}
    void want(const runtime::schedule::Snapshot&, runtime::schedule::TimePoint,
              runtime::schedule::Wanted&) override {}
};

}  // namespace smt::tests
