// What counters of a kernel, in the store, say of its waits, for the Markov model (profiler/models/stalls.h).
#pragma once

#include <optional>

#include "profiler/models/stalls.h"
#include "profiler/store/profile.h"
#include "runtime/profiles/device_facts.h"

namespace smt::runtime::profiles {

// The device as it was when this kernel was counted. Without a name.
DeviceFacts facts_when_counted(const profiler::Profile& profile);

// Nothing: it was not counted, or by a server that did not count waits, or on a device of which the memory's bandwidth is not known.
std::optional<profiler::models::Waits> waits_of(const profiler::Profile& profile);

}  // namespace smt::runtime::profiles
