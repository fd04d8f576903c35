// The best pair of kernels (FindCoSchedule of Kernelet's Algorithm 1): with the largest CP (equation 1), and its blocks on an SM.
//
// CP of a pair that was measured side by side (`smt profile --pair`) is what was measured: of the combinations of CTAs of which both
// kernels' rates are known, and which still fit, that with the largest one, as Kernelet's OPT has it (5.1). Rates that keep a pipe busier than it can be are
// refused (beyond_pipe()). Of all other pairs CP is the model's. Pairs of both kinds are pruned by PUR and MUR (4.3) where both kernels were counted; a measured pair of which
// one was not is not pruned.
//
// What the model says of a pair depends on both profiles and on what CTAs take, and is computed once for these: some 40 us, of which
// a few hundred pairs would be looked at in a decision. So kernels have numbers, the same for the same profile and CTA, and what is
// known of a pair is found by two of them.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "profiler/models/co_schedule.h"
#include "runtime/schedule/policies/knobs.h"
#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

class Pairs {
public:
    using Kernels = std::vector<const Kernel*>;

    // Of the knobs: prune, least_profit, least_measured. With slices the model is the paper's, and its blocks of a pair are those that end together, not those
    // with the largest profit; without, it is told what was counted of waits and measured with fewer CTAs.
    explicit Pairs(const SliceKnobs& knobs) : likeness_(knobs.prune), paper_(knobs.slices), least_profit_(knobs.least_profit), least_measured_(knobs.least_measured) {}

    // Whether anything can be said of it: by the model, or because it was measured beside another.
    static bool knows(const Kernel& kernel, const Device& device) { return is_counted(kernel, device) || (kernel.profile && !kernel.profile->beside.empty()); }

    struct Found {
        const Kernel* first = nullptr;
        const Kernel* second = nullptr;
        models::CoSchedule together;
        bool measured = false;   // else the model says so
    };
    // Nothing: there is no pair with a larger profit than the least. `one`, if not null, is in it.
    //
    // No more than kMostFresh pairs that nobody has studied are computed at a time; complete() says whether that were all. The
    // others are not considered until the next choice.
    static constexpr int kMostFresh = 8;
    std::optional<Found> best(const Kernels& kernels, const Kernel* one, const Device& device);
    bool complete() const { return fresh_ <= kMostFresh; }

    // A pair that best() of these kernels would compute, whichever of them is `one`; null: there is none.
    std::unique_ptr<Study> study(const Kernels& kernels, const Device& device);
    void learn(std::unique_ptr<Study> study);

private:
    using Answer = std::optional<models::CoSchedule>;   // nothing: no blocks of both fit
    class PairStudy;
    struct Side {                                       // profiles are kept, so that no other has the same address
        std::shared_ptr<const Profile> profile;
        Resources cta;
    };
    struct Pair {
        size_t first, second;                           // of the kernels
    };
    static constexpr size_t kMostSides = 128;           // of more at once, the others are not paired

    void number(const Kernels& kernels, const Device& device);
    bool number_each(const Kernels& kernels, const Device& device);
    void list(const Kernels& kernels, const Kernel* one, const Device& device);
    // Of two sides.
    struct Known {
        uint16_t answer = 0;   // its place, from 1 on; 0: not computed
        uint8_t prune = 0;  // from 1 on; 0: not computed
        bool measured = false; // the answer is what was measured
    };
    Known& known(const Pair& pair) { return known_[numbers_[pair.first] * kMostSides + numbers_[pair.second]]; }
    int prune(const Kernels& kernels, const Pair& pair, Known& known, const Device& device) { return known.prune ? known.prune : compare(kernels, pair, known, device); }
    int compare(const Kernels& kernels, const Pair& pair, Known& known, const Device& device);
    void keep(Known& known, const Answer& answer);
    static bool is_counted(const Kernel& kernel, const Device& device) {
        return kernel.profile && kernel.profile->mix && kernel.profile->mix->instructions_per_block > 0 && device.model;
    }
    template <class Each>
    void all_pairs(const Each& each);
    const Answer& together(const Kernels& kernels, const Pair& pair, const Device& device);
    std::unique_ptr<PairStudy> study_of(const Kernels& kernels, const Pair& pair, const Device& device);

    models::PruneThresholds likeness_;
    bool paper_;
    double least_profit_;
    double least_measured_;
    int fresh_ = 0;  // pairs that the last choice had not seen before; one too many stands for all
    uint64_t generation_ = 0;                           // of numbers
    std::vector<Side> sides_;                           // by number
    std::vector<Known> known_;                          // by two numbers
    std::vector<Answer> answers_;
    std::vector<size_t> numbers_;                       // of a call's kernels
    std::vector<size_t> studied_;                       // of those of which nothing was left to study
    std::vector<Pair> kept_;                            // pairs of a call that are not too much alike
    std::vector<Pair> unpruned_;                        // and those that were measured, of kernels that were not counted
    std::vector<int> least_;                            // by kernel: of its pairs' likenesses
};

}  // namespace smt::runtime::schedule
