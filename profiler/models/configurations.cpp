#include "profiler/models/configurations.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace smt::profiler::models {

std::vector<Configuration> prune(std::vector<Configuration> configurations) {
    std::sort(configurations.begin(), configurations.end(),
              [](const Configuration& a, const Configuration& b) {
                  return std::tie(a.ctas_per_sm, a.nanoseconds) < std::tie(b.ctas_per_sm, b.nanoseconds);
              });
    std::vector<Configuration> kept;
    for (const Configuration& each : configurations) {
        if (kept.empty() || each.nanoseconds < kept.back().nanoseconds) kept.push_back(each);
    }
    return kept;
}

std::vector<double> relative_throughput(const std::vector<Configuration>& configurations, int most) {
    const auto all = std::find_if(configurations.begin(), configurations.end(),
                                  [&](const Configuration& each) { return each.ctas_per_sm == most; });
    if (all == configurations.end() || most < 1) return {};
    std::vector<double> found;
    double at = 0, before = 0;  // of the last one that was measured: CTAs, and throughput
    for (auto each = configurations.begin(); each <= all; ++each) {
        if (each->ctas_per_sm <= at || each->ctas_per_sm > most) return {};
        const double rate = all->nanoseconds / each->nanoseconds;
        for (int ctas = static_cast<int>(at) + 1; ctas <= each->ctas_per_sm; ++ctas)
            found.push_back(std::lerp(before, rate, (ctas - at) / (each->ctas_per_sm - at)));
        at = each->ctas_per_sm;
        before = rate;
    }
    return found;
}

double remaining_time(double alone, uint64_t blocks, uint64_t blocks_executed) {
    if (blocks_executed >= blocks) return 0;
    return alone * static_cast<double>(blocks - blocks_executed) / static_cast<double>(blocks);
}

}  // namespace smt::profiler::models
