// Kernels of all kinds on a GPU of 132 multiprocessors, and how decisions about them are timed.
#pragma once

#include <algorithm>

#include "tests/policy/snapshots.h"

namespace smt::bench {

using namespace tests;
using Watch = std::chrono::steady_clock;

inline constexpr int kSms = 132;

inline Device large_device() {
    Device made = device(kSms);
    made.model = models::Multiprocessor{4, {.latency = 600, .requests_per_cycle = 0.56}};
    return made;
}

inline std::shared_ptr<const Profile> profile_of(double memory_ratio, int sms, int ctas, uint64_t blocks) {
    Profile made;
    made.blocks = blocks;
    for (int c = 1; c <= ctas; ++c) made.configurations.push_back({c, 1e6 / c});
    made.preemption = 100us;
    made.slice_overhead = 10us;
    made.mix = Mix{{1 - memory_ratio, memory_ratio}, memory_ratio, 0, 10000};
    made.footprint = models::Footprint{sms, ctas, 1};
    return std::make_shared<Profile>(made);
}

// `kind`: 1 to 16.
inline Kernel kernel_of(uint64_t id, uint64_t kind) {
    const uint32_t parts = 2u << kind % 4;  // 2 to 16 fill a multiprocessor
    const int ctas = static_cast<int>(std::max(1u, parts / 2)), sms = 8 + 7 * static_cast<int>(kind);
    Kernel made = kernel(id, kSms * parts * (1 + kind % 5), nth_of(kSm, parts));
    made.priority = static_cast<int>(kind % 3);
    made.weight = static_cast<double>(1 + kind % 2);
    made.profile = profile_of(0.02 * static_cast<double>(kind), sms, ctas, made.blocks);
    return made;
}

inline double since_us(Watch::time_point begin) {
    return std::chrono::duration<double, std::micro>(Watch::now() - begin).count();
}

inline double quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, static_cast<size_t>(q * static_cast<double>(values.size())))];
}

}  // namespace smt::bench
