#include "profiler/models/configurations.h"

#include <algorithm>
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

double remaining_time(double alone, uint64_t blocks, uint64_t blocks_executed) {
    if (blocks_executed >= blocks) return 0;
    return alone * static_cast<double>(blocks - blocks_executed) / static_cast<double>(blocks);
}

}  // namespace smt::profiler::models
