// The best pair of kernels by Kernelet's model (FindCoSchedule of its Algorithm 1): pruned by PUR and MUR
// (4.3), with the largest CP (equation 1) and the balanced blocks (equation 8).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "profiler/models/co_schedule.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

class Pairs {
public:
    explicit Pairs(const models::Likeness& likeness) : likeness_(likeness) {}

    // Whether the model can say anything of it.
    static bool knows(const Kernel& kernel, const Device& device) {
        return kernel.profile && kernel.profile->mix && kernel.profile->mix->instructions_per_block > 0 && device.model;
    }

    struct Found {
        const Kernel* first = nullptr;
        const Kernel* second = nullptr;
        models::CoSchedule together;
    };
    // Nothing: there is no pair with a profit. `one`, if not null, is in it.
    std::optional<Found> best(const std::vector<const Kernel*>& kernels, const Kernel* one, const Device& device);

private:
    // The same profiles and resources give the same answer, however often they come together. Profiles are
    // kept alive, so that no other has the same address.
    struct Key {
        std::shared_ptr<const Profile> first, second;
        Resources a, b;
        bool operator<(const Key& other) const;
    };
    const std::optional<models::CoSchedule>& together(const Kernel& first, const Kernel& second, const Device& device);

    models::Likeness likeness_;
    std::map<Key, std::optional<models::CoSchedule>> computed_;   // nothing: no blocks of both fit
};

}  // namespace smt::runtime::schedule
