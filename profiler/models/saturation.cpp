#include "profiler/models/saturation.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace smt::profiler::models {

std::optional<Footprint> footprint(std::span<const SaturationPoint> points, int sms, double loss) {
    if (sms < 1) return std::nullopt;
    double best = 0;
    for (const SaturationPoint& point : points) best = std::max(best, point.all_sms);
    const double wanted = (1 - loss) * best;
    const auto size = [](const Footprint& one) { return std::tuple(one.sms * one.ctas_per_sm, one.sms); };
    std::optional<Footprint> smallest;
    for (const SaturationPoint& point : points) {
        if (point.ctas_per_sm <= 0 || point.one_sm <= 0 || point.all_sms <= 0 || point.all_sms < wanted)
            continue;
        // A measurement of all of them that is better than so many times one is still a measurement.
        const int needed = static_cast<int>(std::clamp(std::ceil(wanted / point.one_sm), 1.0, double(sms)));
        const double expected =
            needed == sms ? point.all_sms : std::min(needed * point.one_sm, point.all_sms);
        const Footprint found{needed, point.ctas_per_sm, expected};
        if (!smallest || size(found) < size(*smallest)) smallest = found;
    }
    return smallest;
}

}  // namespace smt::profiler::models
