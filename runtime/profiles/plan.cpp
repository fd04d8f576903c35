#include "runtime/profiles/plan.h"

#include <algorithm>

namespace smt::runtime::profiles {

std::vector<profiler::Placement> placements(int multiprocessors, int most_ctas) {
    std::vector<profiler::Placement> plan;
    const auto add = [&](int sms, int ctas) {
        const profiler::Placement placement{sms, ctas};
        if (std::find(plan.begin(), plan.end(), placement) == plan.end()) plan.push_back(placement);
    };
    for (int ctas = most_ctas; ctas >= 1; --ctas) add(multiprocessors, ctas);
    for (int ctas = most_ctas; ctas >= 1; --ctas) add(1, ctas);
    for (int sms = 2; sms < multiprocessors; sms *= 2) add(sms, most_ctas);
    return plan;
}

int64_t samples_wanted(const profiler::Placement& placement, int multiprocessors, int most_ctas) {
    return placement.sms == multiprocessors && placement.ctas_per_sm == most_ctas ? 1 : kSamples;
}

uint64_t sample_blocks(const profiler::Placement& placement, uint64_t block_ns) {
    const auto together = static_cast<uint64_t>(std::max<int64_t>(1, placement.sms * placement.ctas_per_sm));
    if (block_ns == 0) return together * kRounds;
    const uint64_t least = (kLeastSampleNs + block_ns - 1) / block_ns;
    return together * std::max(least, std::clamp(kMostSampleNs / block_ns, kLeastRounds, kRounds));
}

}  // namespace smt::runtime::profiles
