#include "runtime/schedule/policies/pairs.h"

#include <algorithm>

#include "profiler/models/stalls.h"
#include "runtime/schedule/combinations.h"
#include "runtime/schedule/estimate.h"
#include "runtime/schedule/lookup.h"

namespace smt::runtime::schedule {

namespace {

constexpr int kOneMix = 10;   // after eight halvings only kernels of one mix are pruned
constexpr int kUnknown = 11;  // no number of halvings: not both kernels were counted

// The measured combination with the largest profit that is possible (beyond_pipe()) and fits; nothing: none.
std::optional<models::CoSchedule> best_measured(const Kernel& first, const Kernel& second,
                                                const Device& device) {
    std::optional<models::CoSchedule> best;
    for (const models::CoSchedule& each : measured_together(*first.profile, *second.profile)) {
        if ((best && each.profit <= best->profit) || !fit_together(each.blocks, first, second, device))
            continue;
        if (!beyond_pipe(*first.profile, *second.profile, each)) best = each;
    }
    return best;
}

// `paper`: only the inputs of Kernelet's model.
models::KernelModel model_of(const Kernel& kernel, const Resources& limits, bool paper) {
    const Mix& mix = *kernel.profile->mix;
    const Resources cta = cta_of(kernel, limits);
    const uint32_t warps = cta.warps ? cta.warps : (cta.threads + 31) / 32;
    models::KernelModel model{static_cast<int>(std::max(1u, warps)), most_ctas(kernel, limits),
                              mix.memory_ratio, mix.uncoalesced_ratio, mix.instructions_per_block};
    if (paper) return model;
    if (mix.waits) models::tell(*mix.waits, model);
    model.rates = models::relative_throughput(kernel.profile->by_ctas, model.most_blocks);
    return model;
}

}  // namespace

class Pairs::PairStudy final : public Study {
public:
    void run() override {
        const auto choose = paper ? models::balanced : models::most_profitable;
        answer = choose(model, first, second, ratios);
    }

    uint64_t generation = 0;
    Known* known = nullptr;  // valid while the generation is the same
    bool paper = false;
    models::Multiprocessor model;
    models::KernelModel first, second;
    std::vector<models::Blocks> ratios;
    Answer answer;
};

// ---- Kernels by number

// Numbers the kernels. If there are more kinds of kernels than numbers, the last ones are not paired.
// Numbering starts again if that frees the numbers of kernels that are gone.
void Pairs::number(const Kernels& kernels, const Device& device) {
    known_.resize(kMostSides * kMostSides);
    if (number_each(kernels, device)) return;
    std::vector<bool> used(kMostSides);
    for (const size_t each : numbers_)
        if (each < kMostSides) used[each] = true;
    if (std::ranges::find(used, false) == used.end()) return;
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
        numbers_.push_back(find_from(sides_, next, [&](const Side& side) {
            return side.profile == kernel->profile && side.cta == cta;
        }));
        if (numbers_.back() == sides_.size() && sides_.size() < kMostSides)
            sides_.push_back({kernel->profile, cta});
    }
    return std::ranges::all_of(numbers_, [](size_t each) { return each < kMostSides; });
}

// Of kernels with one number the first two, and `one`, are in pairs: what further ones would gain is known of
// these. So the pairs are as many as kinds of kernels make, not as tenants.
void Pairs::thin_out(const Kernels& kernels, const Kernel* one) {
    counts_.assign(sides_.size(), 0);
    for (size_t i = 0; i < numbers_.size(); ++i)
        if (numbers_[i] < kMostSides && ++counts_[numbers_[i]] > 2 && kernels[i] != one)
            numbers_[i] = kMostSides;
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

// Lists the least alike pairs (of `one`, if not null): those that are not pruned, or would not be with the
// thresholds halved the fewest times. None is listed if all are of one mix. Also lists measured pairs of
// unknown likeness.
void Pairs::list(const Kernels& kernels, const Kernel* one, const Device& device) {
    kept_.clear();
    unpruned_.clear();
    int least = kOneMix;
    all_pairs([&](const Pair& pair, Known& known) {
        if (one && kernels[pair.first] != one && kernels[pair.second] != one) return;
        const int alike = prune(kernels, pair, known, device);
        if (alike == kUnknown && known.measured) unpruned_.push_back(pair);
        if (alike > least) return;
        if (alike < least) kept_.clear(), least = alike;
        if (alike < kOneMix) kept_.push_back(pair);
    });
}

// 1 + the number of times that alpha_p and alpha_m must be halved until the two are not too alike. kOneMix:
// no number is enough. kUnknown: not both kernels were counted. Also keeps a measurement of the two.
int Pairs::compare(const Kernels& kernels, const Pair& pair, Known& known, const Device& device) {
    const Kernel &first = *kernels[pair.first], &second = *kernels[pair.second];
    if (const Answer measured = best_measured(first, second, device)) {
        keep(known, measured);
        known.measured = true;
    }
    const auto counted = [&](const Kernel& kernel) {
        return known.measured ? kernel.profile->mix.has_value() : is_counted(kernel, device);
    };
    if (!counted(first) || !counted(second)) return known.prune = kUnknown;
    models::PruneThresholds allowed = likeness_;
    known.prune = 1;
    while (known.prune < kOneMix &&
           models::too_alike(first.profile->mix->utilization, second.profile->mix->utilization, allowed)) {
        allowed.pur /= 2;
        allowed.mur /= 2;
        ++known.prune;
    }
    return known.prune;
}

void Pairs::keep(Known& known, const Answer& answer) {
    answers_.push_back(answer);
    known.answer = static_cast<uint16_t>(answers_.size());
}

// ---- The model

std::unique_ptr<Pairs::PairStudy> Pairs::study_of(const Kernels& kernels, const Pair& pair,
                                                  const Device& device) {
    const Resources limits = limits_of(device);
    const Kernel &first = *kernels[pair.first], &second = *kernels[pair.second];
    auto study = std::make_unique<PairStudy>();
    study->generation = generation_;
    study->known = &known(pair);
    study->paper = paper_;
    study->model = *device.model;
    study->first = model_of(first, limits, paper_);
    study->second = model_of(second, limits, paper_);
    study->ratios = combinations(first, second, device);
    return study;
}

std::unique_ptr<Study> Pairs::study(const Kernels& kernels, const Device& device) {
    number(kernels, device);
    thin_out(kernels, nullptr);
    if (numbers_ == studied_) return nullptr;
    // The pairs that list() would keep, of all kernels or of any one.
    least_.assign(kernels.size() + 1, kOneMix);
    kept_.clear();
    all_pairs([&](const Pair& pair, Known& known) {
        const int alike = prune(kernels, pair, known, device);
        for (const size_t of : {pair.first, pair.second, kernels.size()})
            least_[of] = std::min(least_[of], alike);
        if (known.answer == 0 && alike < kOneMix) kept_.push_back(pair);
    });
    for (const Pair& pair : kept_) {
        const int alike = known(pair).prune;
        if (alike == least_[pair.first] || alike == least_[pair.second] || alike == least_.back())
            return study_of(kernels, pair, device);
    }
    studied_ = numbers_;
    return nullptr;
}

void Pairs::learn(std::unique_ptr<Study> study) {
    auto& made = static_cast<PairStudy&>(*study);
    if (made.generation != generation_ || made.known->answer != 0) return;
    keep(*made.known, made.answer);
}

const Pairs::Answer& Pairs::together(const Kernels& kernels, const Pair& pair, const Device& device) {
    const Known& found = known(pair);
    if (found.answer == 0) {
        std::unique_ptr<PairStudy> study = study_of(kernels, pair, device);
        study->run();
        learn(std::move(study));
    }
    return answers_[found.answer - 1u];
}

std::optional<Pairs::Found> Pairs::best(const Kernels& kernels, const Kernel* one, const Device& device) {
    number(kernels, device);
    thin_out(kernels, one);
    list(kernels, one, device);
    const Pair* best = nullptr;
    double profit = 0;
    const auto choose = [&](const std::vector<Pair>& pairs) {
        for (const Pair& pair : pairs) {
            const Answer& found = together(kernels, pair, device);
            if (!found || found->profit <= (known(pair).measured ? least_measured_ : least_profit_)) continue;
            if (!best || found->profit > profit) best = &pair, profit = found->profit;
        }
    };
    choose(kept_);
    choose(unpruned_);
    if (!best) return std::nullopt;
    const Known& found = known(*best);
    return Found{kernels[best->first], kernels[best->second], *answers_[found.answer - 1u], found.measured};
}

}  // namespace smt::runtime::schedule
