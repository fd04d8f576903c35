// What counters of a kernel, in the store, say of its waits, for the Markov model (profiler/models/stalls.h).
#pragma once

#include <optional>

#include "profiler/models/stalls.h"
#include "profiler/store/profile.h"
#include "runtime/profiles/device_facts.h"

namespace smt::runtime::profiles {

// The device as it was when this kernel was counted. Without a name.
DeviceFacts facts_when_counted(const profiler::Profile& profile);

// For warps, of each scheduler: 64 on a multiprocessor of compute capability 9.0. Some others have 48 (docs/limits.md).
inline constexpr double kSlotsOfScheduler = 16;

// Nothing: it was not counted, or by a server that did not count waits, or issued nothing, or on a device of which the memory's bandwidth is not known.
std::optional<profiler::models::Waits> waits_of(const profiler::Profile& profile);

}  // namespace smt::runtime::profiles
