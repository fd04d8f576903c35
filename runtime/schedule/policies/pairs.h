// The best pair of kernels, with its blocks on an SM: the pair with the largest CP (equation 1),
// FindCoSchedule of Kernelet's Algorithm 1.
//
// For a pair that was measured side by side (`smt profile --pair`), CP is the measured one: the largest over
// the combinations of CTAs for which both kernels have a rate and which still fit, as in Kernelet's OPT
// (5.1). Rates that imply a pipe busier than possible are rejected (beyond_pipe()). For all other pairs CP is
// the model's. Pairs of both kinds are pruned by PUR and MUR (4.3) if both kernels were counted. A measured
// pair with an uncounted kernel is not pruned.
//
// The model's answer depends on both profiles and on the CTAs' resources, and is computed once for these: it
// takes some 40 us, and a decision looks at up to a few hundred pairs. So each kernel has a number, the same
// for the same profile and CTA, and results are found by two numbers. Not thread-safe.
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

    // Uses the knobs prune, least_profit, least_measured and slices. With slices, the model is the paper's,
    // and the blocks of a pair are those that end together. Without, the model includes stalls and times with
    // fewer CTAs, and the blocks are those with the largest profit.
    explicit Pairs(const SliceKnobs& knobs)
        : likeness_(knobs.prune),
          paper_(knobs.slices),
          least_profit_(knobs.least_profit),
          least_measured_(knobs.least_measured) {}

    // Whether the kernel can be paired: by the model, or because it was measured beside another kernel.
    static bool knows(const Kernel& kernel, const Device& device) {
        return is_counted(kernel, device) || (kernel.profile && !kernel.profile->beside.empty());
    }

    struct Found {
        const Kernel* first = nullptr;
        const Kernel* second = nullptr;
        models::CoSchedule together;
        bool measured = false;  // else by the model
    };
    // The best pair; nothing: no pair exceeds the least profit. `one`, if not null, is in the pair. Computes
    // what was not studied.
    std::optional<Found> best(const Kernels& kernels, const Kernel* one, const Device& device);

    // A pair that best() of these kernels would compute, for any `one` of the first two of its kind; null:
    // there is none.
    std::unique_ptr<Study> study(const Kernels& kernels, const Device& device);
    void learn(std::unique_ptr<Study> study);

private:
    using Answer = std::optional<models::CoSchedule>;  // nothing: no blocks of both fit
    class PairStudy;
    struct Side {  // keeps the profile: its address identifies it
        std::shared_ptr<const Profile> profile;
        Resources cta;
    };
    struct Pair {
        size_t first, second;  // indices into the kernels
    };
    static constexpr size_t kMostSides = 128;  // further kernels are not paired

    void number(const Kernels& kernels, const Device& device);
    bool number_each(const Kernels& kernels, const Device& device);
    void list(const Kernels& kernels, const Kernel* one, const Device& device);
    // What is known of two sides.
    struct Known {
        uint16_t answer = 0;    // 1 + index of the answer; 0: not computed
        uint8_t prune = 0;      // 1 and more, as of compare(); 0: not computed
        bool measured = false;  // the answer is a measurement
    };
    Known& known(const Pair& pair) {
        return known_[numbers_[pair.first] * kMostSides + numbers_[pair.second]];
    }
    int prune(const Kernels& kernels, const Pair& pair, Known& known, const Device& device) {
        return known.prune ? known.prune : compare(kernels, pair, known, device);
    }
    int compare(const Kernels& kernels, const Pair& pair, Known& known, const Device& device);
    void keep(Known& known, const Answer& answer);
    static bool is_counted(const Kernel& kernel, const Device& device) {
        return kernel.profile && kernel.profile->mix && kernel.profile->mix->instructions_per_block > 0 &&
               device.model;
    }
    void thin_out(const Kernels& kernels, const Kernel* one);
    template <class Each>
    void all_pairs(const Each& each);
    const Answer& together(const Kernels& kernels, const Pair& pair, const Device& device);
    std::unique_ptr<PairStudy> study_of(const Kernels& kernels, const Pair& pair, const Device& device);

    models::PruneThresholds likeness_;
    bool paper_;
    double least_profit_;
    double least_measured_;
    uint64_t generation_ = 0;   // of the numbers
    std::vector<Side> sides_;   // by number
    std::vector<Known> known_;  // by two numbers
    std::vector<Answer> answers_;
    std::vector<size_t> numbers_;  // of the kernels of this call; kMostSides: it is in no pair
    std::vector<int> counts_;      // of the kernels with each number
    std::vector<size_t> studied_;  // the last numbers_ with nothing left to study
    std::vector<Pair> kept_;       // the unpruned pairs of this call
    std::vector<Pair> unpruned_;   // measured pairs with an uncounted kernel
    std::vector<int> least_;       // by kernel: the least `prune` of its pairs
};

}  // namespace smt::runtime::schedule
