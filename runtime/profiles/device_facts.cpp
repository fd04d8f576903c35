#include "runtime/profiles/device_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace smt::runtime::profiles {

namespace {

constexpr double kSectorsOfWarp = 32;     // that an uncoalesced access touches: one for each thread, where
                                          // Kernelet's C2050 fetched 128 bytes for each
constexpr double kTransfersPerClock = 2;  // double data rate: the attribute is the clock's

}  // namespace

profiler::models::Multiprocessor model_of(const profiler::models::Peak& peak, int multiprocessors) {
    profiler::models::Multiprocessor model;
    // One instruction each. A profile has its device's peak (tools/bench/models writes another one there).
    model.warp_schedulers = kWarpSchedulers;
    if (multiprocessors > 0 && peak.instructions_per_cycle >= multiprocessors)
        model.warp_schedulers = static_cast<int>(std::lround(peak.instructions_per_cycle / multiprocessors));
    model.memory.latency = kLatency;
    model.memory.uncoalesced_requests = kSectorsOfWarp * kSectorBytes / kRequestBytes;
    if (multiprocessors > 0)
        model.memory.requests_per_cycle =
            peak.requests_per_cycle * kSectorBytes / kRequestBytes / multiprocessors;
    return model;
}

DeviceFacts read_facts(const device::Device& device) {
    const auto attribute = [&](CUdevice_attribute which) {
        int value = 0;
        if (device.driver().cuDeviceGetAttribute)
            device.driver().cuDeviceGetAttribute(&value, which, device.device());
        return static_cast<double>(value);
    };
    DeviceFacts facts;
    facts.multiprocessors = device.properties().multiprocessors;
    facts.name = fmt::format("{}, {} multiprocessors", device.properties().name, facts.multiprocessors);
    const double clock = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) * 1000;
    const double bytes_per_second = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) * 1000 *
                                    kTransfersPerClock *
                                    attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
    const int multiprocessors = std::max(1, facts.multiprocessors);
    facts.peak.hertz = clock;
    facts.peak.instructions_per_cycle = kWarpSchedulers * multiprocessors;
    if (clock > 0) facts.peak.requests_per_cycle = bytes_per_second / clock / kSectorBytes;
    facts.model = model_of(facts.peak, multiprocessors);
    return facts;
}

}  // namespace smt::runtime::profiles
