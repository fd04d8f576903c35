#include "runtime/schedule/estimate.h"

#include <cmath>

namespace smt::runtime::schedule {

namespace {

constexpr uint32_t kEndless = 1u << 30;

double prior_ns(const Kernel& kernel, const Device& device, int most) {
    if (!kernel.blocks) return kLaunchNs;
    const double at_once = static_cast<double>(most) * device.sms();
    return std::max(1.0, static_cast<double>(kernel.blocks) / at_once) * kBlockNs;
}

double left_of(const Kernel& kernel, double alone) {
    return kernel.blocks ? models::remaining_time(alone, kernel.blocks, kernel.blocks_done) : alone;
}

bool has_times(const Kernel& kernel) { return kernel.profile && !kernel.profile->configurations.empty(); }

}  // namespace

Resources limits_of(const Device& device) {
    const auto limit = [](uint32_t known) { return known ? known : kEndless; };
    const Resources& sm = device.sm;
    return {limit(sm.threads), limit(sm.registers), limit(sm.shared_bytes), limit(sm.warps), limit(sm.ctas)};
}

Resources cta_of(const Kernel& kernel, const Resources& limits) {
    if (kernel.cta.threads) {
        Resources cta = kernel.cta;
        cta.ctas = 1;
        return cta;
    }
    const int parts = std::max(1, kernel.ctas_per_sm);
    // Rounded down, so that ctas_per_sm CTAs do fit.
    return {limits.threads / parts, limits.registers / parts, limits.shared_bytes / parts,
            limits.warps / parts, std::max(1u, limits.ctas / parts)};
}

int most_ctas(const Kernel& kernel, const Resources& limits) {
    const Resources cta = cta_of(kernel, limits);
    const int said = kernel.ctas_per_sm;
    return std::clamp(said > 0 && holds(limits, cta, said) ? said : fitting(limits, cta), 1, 254);
}

double configured_ns(const Kernel& kernel, const models::Configuration& configuration) {
    double alone = configuration.nanoseconds;
    if (kernel.blocks && kernel.profile->blocks)
        alone *= static_cast<double>(kernel.blocks) / static_cast<double>(kernel.profile->blocks);
    return left_of(kernel, alone);
}

double remaining_ns(const Kernel& kernel, const Device& device, int most) {
    if (kernel.remaining) return ns_of(*kernel.remaining);
    if (kernel.predicted) return left_of(kernel, ns_of(*kernel.predicted));
    if (has_times(kernel)) return configured_ns(kernel, kernel.profile->configurations.back());
    return left_of(kernel, prior_ns(kernel, device, most));
}

double remaining_ns(const Kernel& kernel, const Device& device, int most, int ctas) {
    if (!has_times(kernel)) return remaining_ns(kernel, device, most) * most / std::max(1, ctas);
    // The largest configuration with at most `ctas`.
    const auto& known = kernel.profile->configurations;
    auto after = std::ranges::find_if(known, [&](const auto& each) { return each.ctas_per_sm > ctas; });
    return configured_ns(kernel, after == known.begin() ? *after : *std::prev(after));
}

double preemption_ns(const Kernel& kernel) {
    if (kernel.preemption) return ns_of(*kernel.preemption);
    if (!kernel.profile || !kernel.profile->preemption) return kPreemptionNs;
    return static_cast<double>(kernel.profile->preemption->count());
}

uint64_t blocks_left(const Kernel& kernel) {
    return kernel.blocks > kernel.blocks_done ? kernel.blocks - kernel.blocks_done : 0;
}

}  // namespace smt::runtime::schedule
