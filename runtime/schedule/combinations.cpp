#include "runtime/schedule/combinations.h"

#include <algorithm>

#include "runtime/schedule/estimate.h"

namespace smt::runtime::schedule {

std::vector<models::Blocks> combinations(const Kernel& first, const Kernel& second, const Device& device) {
    const Resources limits = limits_of(device), each_first = cta_of(first, limits),
                    each_second = cta_of(second, limits);
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
    for (size_t i = 0; i < kMostCombinations; ++i)
        spread.push_back(found[i * (found.size() - 1) / (kMostCombinations - 1)]);
    return spread;
}

const Beside* rate_beside(const Profile& profile, const Profile& other, int ctas, int other_ctas) {
    const auto found = std::ranges::find_if(profile.beside, [&](const Beside& each) {
        return each.other == other.identity && each.ctas_per_sm == ctas &&
               each.other_ctas_per_sm == other_ctas;
    });
    return found == profile.beside.end() ? nullptr : &*found;
}

std::vector<models::CoSchedule> measured_together(const Profile& first, const Profile& second) {
    std::vector<models::CoSchedule> found;
    for (const Beside& mine : first.beside) {
        if (mine.other != second.identity || second.identity == 0) continue;
        const Beside* const theirs = rate_beside(second, first, mine.other_ctas_per_sm, mine.ctas_per_sm);
        if (!theirs) continue;
        models::CoSchedule made;
        made.blocks = {mine.ctas_per_sm, mine.other_ctas_per_sm};
        made.alone = {1, 1};
        made.together = {mine.rate, theirs->rate};
        made.profit = models::profit(made.alone, made.together);
        found.push_back(made);
    }
    return found;
}

std::optional<BeyondPipe> beyond_pipe(const Profile& first, const Profile& second,
                                      const models::CoSchedule& measured) {
    if (!first.mix || !second.mix) return std::nullopt;
    const auto busy = [&](double models::Utilization::* pipe) {
        const double a = first.mix->utilization.*pipe, b = second.mix->utilization.*pipe;
        // If one kernel alone exceeds 1, the peak is set too low.
        return (measured.together[0] * a + measured.together[1] * b) / std::max({1.0, a, b});
    };
    const double issue = busy(&models::Utilization::pur), memory = busy(&models::Utilization::mur);
    if (std::max(issue, memory) <= kMostBusy) return std::nullopt;
    return issue >= memory ? BeyondPipe{"issue slots", issue} : BeyondPipe{"memory", memory};
}

bool fit_together(const models::Blocks& ctas, const Kernel& first, const Kernel& second,
                  const Device& device) {
    Resources free = limits_of(device);
    const Resources each_first = cta_of(first, free), each_second = cta_of(second, free);
    if (ctas[0] < 1 || ctas[1] < 1 || ctas[0] > most_ctas(first, free) || ctas[1] > most_ctas(second, free))
        return false;
    if (!holds(free, each_first, ctas[0])) return false;
    take(free, each_first, ctas[0]);
    return holds(free, each_second, ctas[1]);
}

}  // namespace smt::runtime::schedule
