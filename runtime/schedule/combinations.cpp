#include "runtime/schedule/combinations.h"

#include <algorithm>

#include "runtime/schedule/estimate.h"

namespace smt::runtime::schedule {

std::vector<models::Blocks> combinations(const Kernel& first, const Kernel& second, const Device& device) {
    const Resources limits = limits_of(device), each_first = cta_of(first, limits), each_second = cta_of(second, limits);
    const int most_first = most_ctas(first, limits), most_second = most_ctas(second, limits);
    std::vector<models::Blocks> found;
    for (int a = 1; a <= most_first; ++a) {
        Resources free = limits;
        if (fitting(free, each_first) < a) break;
        take(free, each_first, a);
        const int b = std::min(fitting(free, each_second), most_second);
        if (b < 1) break;
        take(free, each_second, b);
        if (a == most_first || fitting(free, each_first) == 0) found.push_back({a, b});
    }
    if (found.size() <= kMostCombinations) return found;
    std::vector<models::Blocks> spread;
    for (size_t i = 0; i < kMostCombinations; ++i) spread.push_back(found[i * (found.size() - 1) / (kMostCombinations - 1)]);
    return spread;
}

bool fit_together(const models::Blocks& ctas, const Kernel& first, const Kernel& second, const Device& device) {
    Resources free = limits_of(device);
    const Resources each_first = cta_of(first, free), each_second = cta_of(second, free);
    if (ctas[0] < 1 || ctas[1] < 1 || ctas[0] > most_ctas(first, free) || ctas[1] > most_ctas(second, free)) return false;
    if (!holds(free, each_first, ctas[0])) return false;
    take(free, each_first, ctas[0]);
    return holds(free, each_second, ctas[1]);
}

}  // namespace smt::runtime::schedule
