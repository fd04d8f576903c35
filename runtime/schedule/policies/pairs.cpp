#include "runtime/schedule/policies/pairs.h"

#include <algorithm>

#include "runtime/schedule/estimate.h"

namespace smt::runtime::schedule {

namespace {

constexpr int kHalvings = 8;   // then only kernels of one mix are left out

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

}  // namespace

class Pairs::PairStudy final : public Study {
public:
    void run() override {
        const auto choose = balanced ? models::balanced : models::most_profitable;
        answer = choose(model, first, second, ratios);
    }

    uint64_t generation = 0;
    uint16_t* place = nullptr;     // while the generation is the same
    bool balanced = false;
    models::Multiprocessor model;
    models::Kernel first, second;
    std::vector<models::Blocks> ratios;
    Answer answer;
};

// ---- Kernels by number

// Of more kinds of kernels than there is room for, those that come last are not paired. Numbers begin again where that makes room: of kernels that are gone.
void Pairs::number(const Kernels& kernels, const Device& device) {
    if (places_.empty()) places_.assign(kMostSides * kMostSides, 0);
    if (number_each(kernels, device)) return;
    std::vector<bool> used(kMostSides);
    for (const size_t each : numbers_)
        if (each < kMostSides) used[each] = true;
    if (std::find(used.begin(), used.end(), false) == used.end()) return;
    ++generation_;
    sides_.clear();
    answers_.clear();
    studied_.clear();
    std::fill(places_.begin(), places_.end(), 0);
    number_each(kernels, device);
}

bool Pairs::number_each(const Kernels& kernels, const Device& device) {
    numbers_.clear();
    const Resources limits = limits_of(device);
    for (const Kernel* kernel : kernels) {
        const Resources cta = cta_of(*kernel, limits);
        const auto found = std::find_if(sides_.begin(), sides_.end(),
                                        [&](const Side& side) { return side.profile == kernel->profile && side.cta == cta; });
        numbers_.push_back(static_cast<size_t>(found - sides_.begin()));
        if (found == sides_.end() && sides_.size() < kMostSides) sides_.push_back({kernel->profile, cta});
    }
    return std::all_of(numbers_.begin(), numbers_.end(), [](size_t each) { return each < kMostSides; });
}

void Pairs::list(const Kernels& kernels, const Kernel* one) {
    pairs_.clear();
    for (size_t i = 0; i < kernels.size(); ++i) {
        for (size_t j = i + 1; j < kernels.size(); ++j) {
            if (!one || kernels[i] == one || kernels[j] == one) pairs_.push_back({i, j});
        }
    }
    prune(kernels);
}

// Those that are not too much alike. All are left out if they are of one mix.
void Pairs::prune(const Kernels& kernels) {
    models::Likeness likeness = likeness_;
    kept_.clear();
    for (int i = 0; i <= kHalvings && kept_.empty(); ++i) {
        for (const Pair& pair : pairs_) {
            if (!models::too_alike(kernels[pair.first]->profile->mix->utilization, kernels[pair.second]->profile->mix->utilization,
                                   likeness))
                kept_.push_back(pair);
        }
        likeness.pur /= 2;
        likeness.mur /= 2;
    }
}

// ---- What the model says

std::unique_ptr<Pairs::PairStudy> Pairs::study_of(const Kernels& kernels, const Pair& pair, const Device& device) {
    const Resources limits = limits_of(device);
    const Kernel &first = *kernels[pair.first], &second = *kernels[pair.second];
    const Resources a = cta_of(first, limits), b = cta_of(second, limits);
    const int most_a = most_ctas(first, limits), most_b = most_ctas(second, limits);
    auto study = std::make_unique<PairStudy>();
    study->generation = generation_;
    study->place = &place_of(pair);
    study->balanced = balanced_;
    study->model = *device.model;
    study->first = model_of(first, a, most_a);
    study->second = model_of(second, b, most_b);
    study->ratios = candidates(limits, a, most_a, b, most_b);
    return study;
}

std::unique_ptr<Study> Pairs::study(const Kernels& kernels, const Device& device) {
    number(kernels, device);
    if (numbers_ == studied_) return nullptr;
    for (size_t one = 0; one <= kernels.size(); ++one) {
        list(kernels, one < kernels.size() ? kernels[one] : nullptr);
        for (const Pair& pair : kept_) {
            if (numbered(pair) && place_of(pair) == 0) return study_of(kernels, pair, device);
        }
    }
    studied_ = numbers_;
    return nullptr;
}

void Pairs::learn(std::unique_ptr<Study> study) {
    auto& made = static_cast<PairStudy&>(*study);
    if (made.generation != generation_ || *made.place != 0) return;
    answers_.push_back(made.answer);
    *made.place = static_cast<uint16_t>(answers_.size());
}

const Pairs::Answer& Pairs::together(const Kernels& kernels, const Pair& pair, const Device& device) {
    static const Answer kNone;
    if (!numbered(pair)) return kNone;
    uint16_t& place = place_of(pair);
    if (place == 0) {
        fresh_ = std::min(fresh_ + 1, kMostFresh + 1);
        if (!complete()) return kNone;
        std::unique_ptr<PairStudy> study = study_of(kernels, pair, device);
        study->run();
        learn(std::move(study));
    }
    return answers_[place - 1u];
}

std::optional<Pairs::Found> Pairs::best(const Kernels& kernels, const Kernel* one, const Device& device) {
    fresh_ = 0;
    number(kernels, device);
    list(kernels, one);
    std::optional<Found> best;
    for (const Pair& pair : kept_) {
        const Answer& found = together(kernels, pair, device);
        if (found && found->profit > (best ? best->together.profit : least_profit_))
            best = Found{kernels[pair.first], kernels[pair.second], *found};
    }
    return best;
}

}  // namespace smt::runtime::schedule
