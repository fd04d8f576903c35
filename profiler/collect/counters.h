// What a launch did, by the GPU's counters. The kernel is run several times over, with its memory put back in
// between: so it must not wait for other work.
#pragma once

#include <cuda.h>

#include <memory>
#include <optional>
#include <string>

#include "profiler/collect/metrics.h"

namespace smt::profiler::collect {

class LaunchCounters {
public:
    virtual ~LaunchCounters() = default;

    // Around one launch, on the thread that makes it; its context is current. No other thread launches or
    // waits for the device meanwhile. True: after() has to follow.
    virtual bool before() = 0;
    // Waits for the kernel. Nothing: this one was not counted.
    virtual std::optional<Sample> after() = 0;
    // Why there were none lately, or will be none at all (final()); empty: there were.
    virtual const std::string& problem() const = 0;
    virtual bool final() const = 0;
};

// CUPTI's range profiler on the context. Null: not available; `problem` says why, and what would have to
// be changed.
std::unique_ptr<LaunchCounters> open_cupti_counters(CUcontext context, CUdevice device, std::string* problem);

}  // namespace smt::profiler::collect
