#include "runtime/schedule/policies/pairs.h"

#include <algorithm>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/policies/lookup.h"

namespace smt::runtime::schedule {

namespace {

constexpr int kOneMix = 10;   // after eight halvings only kernels of one mix are left out

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
    Known* known = nullptr;        // while the generation is the same
    bool balanced = false;
    models::Multiprocessor model;
    models::Kernel first, second;
    std::vector<models::Blocks> ratios;
    Answer answer;
};

// ---- Kernels by number

// Of more kinds of kernels than there is room for, those that come last are not paired. Numbers begin again where that makes room: of kernels that are gone.
void Pairs::number(const Kernels& kernels, const Device& device) {
    known_.resize(kMostSides * kMostSides);
    if (number_each(kernels, device)) return;
    std::vector<bool> used(kMostSides);
    for (const size_t each : numbers_)
        if (each < kMostSides) used[each] = true;
    if (std::find(used.begin(), used.end(), false) == used.end()) return;
    ++generation_;
    sides_.clear();
    answers_.clear();
    studied_.clear();
    std::fill(known_.begin(), known_.end(), Known{});
    number_each(kernels, device);
}

bool Pairs::number_each(const Kernels& kernels, const Device& device) {
    numbers_.clear();
    const Resources limits = limits_of(device);
    size_t next = 0;
    for (const Kernel* kernel : kernels) {
        const Resources cta = cta_of(*kernel, limits);
        numbers_.push_back(find_from(sides_, next, [&](const Side& side) { return side.profile == kernel->profile && side.cta == cta; }));
        if (numbers_.back() == sides_.size() && sides_.size() < kMostSides) sides_.push_back({kernel->profile, cta});
    }
    return std::all_of(numbers_.begin(), numbers_.end(), [](size_t each) { return each < kMostSides; });
}

template <class Each>
void Pairs::all_pairs(const Each& each) {
    for (size_t i = 0; i < numbers_.size(); ++i) {
        if (numbers_[i] == kMostSides) continue;
        Known* const line = &known_[numbers_[i] * kMostSides];
        for (size_t j = i + 1; j < numbers_.size(); ++j) {
            if (numbers_[j] < kMostSides) each(Pair{i, j}, line[numbers_[j]]);
        }
    }
}

// The pairs, of this one if it is not null, that are least alike: those that are not too much alike, or would not be if as much again and again were allowed.
// All are left out if they are of one mix.
void Pairs::list(const Kernels& kernels, const Kernel* one) {
    kept_.clear();
    int least = kOneMix;
    all_pairs([&](const Pair& pair, Known& known) {
        if (one && kernels[pair.first] != one && kernels[pair.second] != one) return;
        const int alike = likeness(kernels, pair, known);
        if (alike < least) kept_.clear(), least = alike;
        if (alike == least && alike < kOneMix) kept_.push_back(pair);
    });
}

// How often alpha_p and alpha_m have to be halved until the two are not too much alike, from 1 on; kOneMix: that is never enough.
int Pairs::compare(const Kernels& kernels, const Pair& pair, Known& known) const {
    models::Likeness allowed = likeness_;
    known.likeness = 1;
    while (known.likeness < kOneMix && models::too_alike(kernels[pair.first]->profile->mix->utilization, kernels[pair.second]->profile->mix->utilization, allowed)) {
        allowed.pur /= 2;
        allowed.mur /= 2;
        ++known.likeness;
    }
    return known.likeness;
}

// ---- What the model says

std::unique_ptr<Pairs::PairStudy> Pairs::study_of(const Kernels& kernels, const Pair& pair, const Device& device) {
    const Resources limits = limits_of(device);
    const Kernel &first = *kernels[pair.first], &second = *kernels[pair.second];
    const Resources a = cta_of(first, limits), b = cta_of(second, limits);
    const int most_a = most_ctas(first, limits), most_b = most_ctas(second, limits);
    auto study = std::make_unique<PairStudy>();
    study->generation = generation_;
    study->known = &known(pair);
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
    // What list() would keep of all pairs, or of those of one kernel.
    least_.assign(kernels.size() + 1, kOneMix);
    kept_.clear();
    all_pairs([&](const Pair& pair, Known& known) {
        const int alike = likeness(kernels, pair, known);
        for (const size_t of : {pair.first, pair.second, kernels.size()}) least_[of] = std::min(least_[of], alike);
        if (known.answer == 0 && alike < kOneMix) kept_.push_back(pair);
    });
    for (const Pair& pair : kept_) {
        const int alike = known(pair).likeness;
        if (alike == least_[pair.first] || alike == least_[pair.second] || alike == least_.back()) return study_of(kernels, pair, device);
    }
    studied_ = numbers_;
    return nullptr;
}

void Pairs::learn(std::unique_ptr<Study> study) {
    auto& made = static_cast<PairStudy&>(*study);
    if (made.generation != generation_ || made.known->answer != 0) return;
    answers_.push_back(made.answer);
    made.known->answer = static_cast<uint16_t>(answers_.size());
}

const Pairs::Answer& Pairs::together(const Kernels& kernels, const Pair& pair, const Device& device) {
    static const Answer kNone;
    const Known& found = known(pair);
    if (found.answer == 0) {
        fresh_ = std::min(fresh_ + 1, kMostFresh + 1);
        if (!complete()) return kNone;
        std::unique_ptr<PairStudy> study = study_of(kernels, pair, device);
        study->run();
        learn(std::move(study));
    }
    return answers_[found.answer - 1u];
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
