#include "runtime/server/standstill_rule.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::server {

std::optional<StandstillRule::Verdict> StandstillRule::look(
    uint64_t place, Duration step, const std::function<std::vector<device::WatchedLaunch>()>& launches) {
    stood_ =
        place && place == std::exchange(place_, place) ? stood_ + std::min(step, kLongestStep) : Duration{};
    if (stood_ <= kPatience) return {};
    std::vector<device::WatchedLaunch> all = launches();
    std::ranges::sort(all, {}, &device::WatchedLaunch::since);
    const auto limited = [](const device::WatchedLaunch& each) { return each.launch.limited(); };
    const auto first = std::ranges::find_if(all, limited);
    if (first == all.end()) return {};
    const bool sure = std::ranges::all_of(
        all, [&](const auto& each) { return each.launch.session == first->launch.session; });
    const bool slow = place % 2 != 0;
    if (stood_ <= first->launch.limit + (sure && !slow ? kPatience : kBehindOthers)) return {};
    return Verdict{*first, stood_, sure};
}

}  // namespace smt::runtime::server
