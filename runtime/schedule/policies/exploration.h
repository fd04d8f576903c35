// Exploration: what a policy tries out while programs run, so that it comes to know of kernels what it
// decides by, without `smt profile`. Not in the papers, which measure beforehand.
//
// A trial gives kernels quotas for a moment. What they get done is learnt by the dispatcher, from any run
// with quotas (dispatch/learner.h, dispatch/pair_watch.h), and comes back in the kernels' profiles. So a
// trial ends when the profile has what it was for, or after a bounded time.
//
//   one kernel    All others wait. It runs a slice with so many CTAs on all multiprocessors, or on one.
//   two kernels   Both keep to a combination of CTAs (combinations.h) on all multiprocessors, others wait.
//
// compact needs the first, for its footprints (models/saturation.h): with all CTAs that fit, a half, a
// quarter and so on to one. slice needs a pair's rates with each combination, in terms of both alone with all
// CTAs.
//
// Trials are bounded. They take at most `part` of the time: after one that took t, none begins for
// t (1 / part - 1). One that teaches nothing is repeated `tries` times. None begins while fewer than two
// sessions have managed kernels, while unmanaged work is there, which would not wait, for kernels of which no
// duration is known, or that are short, or where two blocks take longer than `longest_sample`. What was
// measured by `smt profile` is not tried. So a pair of kernels with C combinations costs at most C windows
// once in its life, as what is learnt is kept.
//
//     part 0.05, a trial of 1 ms: 19 ms until the next
//
// Pure, as policies are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/schedule/policies/knobs.h"
#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

class Exploration {
public:
    enum class What { kFootprints, kPairs };
    Exploration(What what, const ExplorationKnobs& knobs) : what_(what), knobs_(knobs) {}

    // True: a trial is under way, and has said what is wanted of each managed kernel.
    bool decides(const Snapshot& snapshot, TimePoint now, Wanted& wanted);
    // Of pairs: something was learnt of this kernel beside another one, and nothing is missing of the two.
    bool explored(const Profile& profile) const { return explored_.contains(profile.identity); }

private:
    struct Side {
        uint64_t id = 0;        // the stream
        uint64_t identity = 0;  // the profile's
        int ctas = 0;
    };
    using Key = std::vector<uint64_t>;  // what is tried
    struct Trial {
        Key key;
        std::vector<Side> sides;  // one or two
        int sms = 0;              // of one kernel
        uint64_t slice = 0;       // of one kernel: its blocks
        TimePoint begun{};
        Duration longest{};
        bool runs = false;                     // of one kernel: all were at rest
        uint64_t launch = 0, blocks_done = 0;  // then
    };
    using Kernels = std::vector<const Kernel*>;

    bool begin(const Snapshot& snapshot, TimePoint now);
    Kernels candidates(const Snapshot& snapshot) const;
    std::optional<Trial> missing(const Kernels& kernels, const Device& device);
    std::optional<Trial> missing_of(const Kernel& kernel, const Device& device);
    std::optional<Trial> missing_of(const Kernel& first, const Kernel& second, const Device& device);
    std::optional<Trial> alone(const Kernel& kernel, const Device& device, int sms, int ctas);
    bool given_up(const Key& key) const;
    bool is_over(const Snapshot& snapshot, TimePoint now);
    void end(TimePoint now);
    void say(const Snapshot& snapshot, Wanted& wanted);
    void say_alone(const Snapshot& snapshot, Wanted& wanted);

    const What what_;
    const ExplorationKnobs knobs_;
    std::optional<Trial> trial_;
    TimePoint next_{};      // no trial begins before
    bool ended_ = false;    // a trial, since what is missing was last looked for
    bool blocked_ = false;  // what is missing could not be tried just now
    std::map<Key, int> tries_;
    std::set<uint64_t> explored_;
    std::vector<std::pair<uint64_t, const Profile*>> seen_;  // of these nothing is missing, by stream
};

}  // namespace smt::runtime::schedule
