#include "runtime/schedule/policies/pairs.h"

#include <tuple>

#include "runtime/schedule/estimate.h"

namespace smt::runtime::schedule {

namespace {

constexpr size_t kMostComputed = 4096;  // some hundred bytes each
constexpr int kHalvings = 8;            // then only kernels of one mix are left out

using Pair = std::pair<const Kernel*, const Kernel*>;

constexpr size_t kMostCandidates = 8;  // ratios an eighth apart are close enough

// Full ones: no further block of either fits. Of more than kMostCandidates, so many, evenly spread.
std::vector<models::Blocks> candidates(const Resources& limits, const Resources& first, int most_first,
                                       const Resources& second, int most_second) {
    std::vector<models::Blocks> found;
    for (int a = 1; a <= most_first; ++a) {
        Resources free = limits;
        if (fitting(free, first) < a) break;
        take(free, first, a);
        const int b = std::min(fitting(free, second), most_second);
        if (b < 1) break;
        take(free, second, b);
        if (a == most_first || fitting(free, first) == 0) found.push_back({a, b});
    }
    if (found.size() <= kMostCandidates) return found;
    std::vector<models::Blocks> spread;
    for (size_t i = 0; i < kMostCandidates; ++i)
        spread.push_back(found[i * (found.size() - 1) / (kMostCandidates - 1)]);
    return spread;
}

models::Kernel model_of(const Kernel& kernel, const Resources& cta, int most) {
    const Mix& mix = *kernel.profile->mix;
    const uint32_t warps = cta.warps ? cta.warps : (cta.threads + 31) / 32;
    return {static_cast<int>(std::max(1u, warps)), most, mix.memory_ratio, mix.uncoalesced_ratio,
            mix.instructions_per_block};
}

// Those that are not too much alike. All of them, if they are of one mix.
std::vector<Pair> pruned(const std::vector<Pair>& pairs, models::Likeness likeness) {
    for (int i = 0; i <= kHalvings; ++i) {
        std::vector<Pair> kept;
        for (const Pair& pair : pairs) {
            if (!models::too_alike(pair.first->profile->mix->utilization,
                                   pair.second->profile->mix->utilization, likeness))
                kept.push_back(pair);
        }
        if (!kept.empty()) return kept;
        likeness.pur /= 2;
        likeness.mur /= 2;
    }
    return {};
}

}  // namespace

bool Pairs::Key::operator<(const Key& other) const {
    const auto of = [](const Resources& each) {
        return std::tie(each.threads, each.registers, each.shared_bytes, each.warps);
    };
    if (first != other.first) return first < other.first;
    if (second != other.second) return second < other.second;
    return std::tuple_cat(of(a), of(b)) < std::tuple_cat(of(other.a), of(other.b));
}

const std::optional<models::CoSchedule>& Pairs::together(const Kernel& first, const Kernel& second,
                                                         const Device& device) {
    const Resources limits = limits_of(device);
    static const std::optional<models::CoSchedule> kNone;
    const Resources a = cta_of(first, limits), b = cta_of(second, limits);
    const Key key{first.profile, second.profile, a, b};
    auto found = computed_.find(key);
    if (found == computed_.end()) {
        fresh_ = std::min(fresh_ + 1, kMostFresh + 1);
        if (!complete()) return kNone;
        found = computed_.emplace(key, std::nullopt).first;
        const int most_a = most_ctas(first, limits), most_b = most_ctas(second, limits);
        const auto choose = balanced_ ? models::balanced : models::most_profitable;
        found->second = choose(*device.model, model_of(first, a, most_a), model_of(second, b, most_b),
                               candidates(limits, a, most_a, b, most_b));
    }
    return found->second;
}

std::optional<Pairs::Found> Pairs::best(const std::vector<const Kernel*>& kernels, const Kernel* one,
                                        const Device& device) {
    if (computed_.size() > kMostComputed) computed_.clear();
    fresh_ = 0;
    std::vector<Pair> pairs;
    for (size_t i = 0; i < kernels.size(); ++i) {
        for (size_t j = i + 1; j < kernels.size(); ++j) {
            if (!one || kernels[i] == one || kernels[j] == one) pairs.push_back({kernels[i], kernels[j]});
        }
    }
    std::optional<Found> best;
    for (const Pair& pair : pruned(pairs, likeness_)) {
        const std::optional<models::CoSchedule>& found = together(*pair.first, *pair.second, device);
        if (found && found->profit > (best ? best->together.profit : kLeastProfit))
            best = Found{pair.first, pair.second, *found};
    }
    return best;
}

}  // namespace smt::runtime::schedule
