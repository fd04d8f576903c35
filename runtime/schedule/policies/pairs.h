// The best pair of kernels by Kernelet's model (FindCoSchedule of its Algorithm 1): pruned by PUR and MUR
// (4.3), with the largest CP (equation 1), and its blocks on an SM.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "profiler/models/co_schedule.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

class Pairs {
public:
    // `balanced`: the blocks of a pair are those that end together, not those with the largest profit.
    Pairs(const models::Likeness& likeness, bool balanced) : likeness_(likeness), balanced_(balanced) {}

    // Whether the model can say anything of it.
    static bool knows(const Kernel& kernel, const Device& device) {
        return kernel.profile && kernel.profile->mix && kernel.profile->mix->instructions_per_block > 0 &&
               device.model;
    }

    struct Found {
        const Kernel* first = nullptr;
        const Kernel* second = nullptr;
        models::CoSchedule together;
    };
    // Nothing: there is no pair with a profit worth the name, which is more than the model's own error (some
    // 0.01, co_schedule.h). `one`, if not null, is in it.
    //
    // A pair's models take some 50 us, and a decision holds up everybody's, so no more than kMostFresh pairs
    // that were never seen are computed at a time; complete() says whether that were all. The others are not
    // considered until the next choice.
    static constexpr double kLeastProfit = 0.01;
    static constexpr int kMostFresh = 8;
    std::optional<Found> best(const std::vector<const Kernel*>& kernels, const Kernel* one,
                              const Device& device);
    bool complete() const { return fresh_ <= kMostFresh; }

private:
    // The same profiles and resources give the same answer, however often they come together. Profiles are
    // kept alive, so that no other has the same address.
    struct Key {
        std::shared_ptr<const Profile> first, second;
        Resources a, b;
        bool operator<(const Key& other) const;
    };
    const std::optional<models::CoSchedule>& together(const Kernel& first, const Kernel& second,
                                                      const Device& device);

    models::Likeness likeness_;
    bool balanced_;
    int fresh_ = 0;  // pairs that the last choice had not seen before; one too many stands for all
    std::map<Key, std::optional<models::CoSchedule>> computed_;  // nothing: no blocks of both fit
};

}  // namespace smt::runtime::schedule
