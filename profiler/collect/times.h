// When kernels ran. The caller of a launch gives it a number; its time is reported with that number.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace smt::profiler::collect {

struct KernelTime {
    uint64_t launch = 0;                  // its number
    uint64_t began_ns = 0, ended_ns = 0;  // of one clock; which one is the source's business
};

class Times {
public:
    using Visit = std::function<void(const KernelTime&)>;

    virtual ~Times() = default;

    // Around the driver's call that launches, on the thread that makes it. Numbers are above 0.
    virtual void before(uint64_t launch) = 0;
    virtual void after() = 0;
    // Launches that are known to be over and were not told yet, in any order. Waits for no work of the GPU.
    // One thread at a time.
    virtual void collect(const Visit& visit) = 0;
};

// CUPTI's activity records; one at a time in a process. Null: there is none, and why in `problem`.
std::unique_ptr<Times> open_cupti_times(std::string* problem);

}  // namespace smt::profiler::collect
