// Whether all managed kernels that are there are short, so that quotas would cost them more than they gain.
//
// A launch with quotas is one of its own, which costs it kSliceNs (estimate.h); launches in pass-through mode
// follow each other at once. What CTAs beside each other gain is a part of the launch's time, mostly below a
// third. A kernel of which no time is known counts as long, so that one is learnt.
#pragma once

#include <algorithm>

#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

// `most`: the longest short kernel, alone. Zero: none is short.
inline bool only_short_kernels(const Snapshot& snapshot, Duration most) {
    bool any = false;
    const bool all = std::ranges::all_of(snapshot.kernels, [&](const Kernel& kernel) {
        if (!kernel.managed) return true;
        any = true;
        return kernel.predicted && *kernel.predicted <= most;
    });
    return any && all;
}

// For policies that order kernels and stop them: a kernel of which no time is known is short until this
// launch has been at work for longer. `most` as above.
inline bool seems_short(const Kernel& kernel, Duration most, TimePoint now) {
    if (kernel.predicted) return *kernel.predicted <= most;
    if (kernel.state == Kernel::State::kWaiting) return most > Duration::zero();
    return now - kernel.since < most;
}

// Says that they run as they are, without quotas.
inline void leave_to_hardware(const Snapshot& snapshot, Wanted& wanted) {
    for (const Kernel& kernel : snapshot.kernels) {
        if (wanted.has_quota(kernel))
            wanted.run(kernel, "all kernels are short: quotas would cost more than they gain");
        else
            wanted.resume(kernel, "all kernels are short: runs as it is");
    }
}

}  // namespace smt::runtime::schedule
