#include "profiler/models/stalls.h"

#include <algorithm>

namespace smt::profiler::models {

void tell(const Waits& waits, KernelModel& kernel) {
    kernel.interval = waits.interval;
    kernel.latency = waits.latency;
    kernel.requests = waits.requests;
    kernel.pipes = waits.pipes;
}

Waits waits(const Stalls& stalls, const Memory& memory) {
    constexpr double kLeastLatency = 1;  // where memory was busy all the time, nothing else is left of it
    if (stalls.issue <= 0) return {};
    Waits found;
    found.interval = std::max(1.0, stalls.warps / stalls.issue - stalls.not_selected - stalls.memory);
    for (int i = 0; i < kPipes; ++i) found.pipes[i] = stalls.busy[i] / stalls.issue;
    if (stalls.memory_ratio <= 0)
        return found;  // stores alone: no warp waits, yet memory serves no more of them
    found.requests = stalls.requests;
    const double stall = stalls.memory / stalls.memory_ratio;
    const double load = stalls.issue * stalls.memory_ratio * stalls.requests / memory.requests_per_cycle;
    const double own = std::max(0.0, stalls.requests - 1) / memory.requests_per_cycle;
    found.latency = std::max(kLeastLatency, stall * (1 - memory.contention * load) - own);
    return found;
}

}  // namespace smt::profiler::models
