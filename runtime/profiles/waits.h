// Inputs of the Markov model for a kernel's waits, from its stored counters (profiler/models/stalls.h).
#pragma once

#include <optional>

#include "profiler/models/stalls.h"
#include "profiler/store/profile.h"
#include "runtime/profiles/device_facts.h"

namespace smt::runtime::profiles {

// The device at the clocks at which this kernel was counted. Without a name.
DeviceFacts facts_when_counted(const profiler::Profile& profile);

// Warp slots of a scheduler: 64 on a multiprocessor of compute capability 9.0. Some others have 48
// (docs/limits.md).
inline constexpr double kSlotsOfScheduler = 16;

// Nothing: the profile has no counters of waits, no instruction was issued, or the memory's bandwidth is not
// known.
std::optional<profiler::models::Waits> waits_of(const profiler::Profile& profile);

}  // namespace smt::runtime::profiles
