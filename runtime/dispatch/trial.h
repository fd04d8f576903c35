// What is tried with a tenant's launches beside or in place of a policy's decisions (experiments.h): nothing,
// but for `smt run --stress` and `smt profile`.
#pragma once

#include <cstdint>

namespace smt::runtime::dispatch {

struct Trial {
    enum class Measures {
        kNothing,
        kTimes,   // durations, by other means
        kSweep,   // launches, with the quotas of a plan
        kHalves,  // launches, limited to half of the CTAs that fit
        kPairs,   // launches beside another program's
    } measures = Measures::kNothing;
    uint64_t stress = 0;  // seed; 0: none

    bool sweeps() const { return measures == Measures::kSweep; }
    // It says with which CTAs launches run.
    bool sets_quotas() const { return measures >= Measures::kSweep; }
    bool replaces_policy() const { return stress != 0 || sets_quotas(); }
    // What launches take is no sample of what they take by themselves.
    bool distorts() const { return stress != 0 || (measures != Measures::kNothing && !sweeps()); }
};

}  // namespace smt::runtime::dispatch
