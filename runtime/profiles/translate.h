// What the store has of a kernel, in the terms of policies (schedule/profile.h).
//
// Nothing is made up: what was not measured is left out, and the policies' own rules for that apply. A curve is one from two numbers of
// CTAs on; of one, `greedy` would learn that a kernel can have that number only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "profiler/store/profile.h"
#include "runtime/profiles/device_facts.h"
#include "runtime/schedule/profile.h"

namespace smt::runtime::profiles {

// Throughput may be so much less than the best where a kernel counts as saturated: smCompactor's "no more than a few per cent".
inline constexpr double kSaturationLoss = 0.05;

// With time for a launch of 2^grid_class blocks. `of_shape`: all profiles of that kernel and block shape, from which comes the mix of
// instructions if this one was not counted: it does not depend on the grid.
schedule::Profile translate(const profiler::Profile& profile, const std::vector<profiler::Profile>& of_shape, const DeviceFacts& facts);

// The peaks that ratios of what was counted are taken of: the device's, at the clock of that time.
profiler::models::Peak peak_of(const profiler::Profile& profile, const DeviceFacts& facts);

// Of the kernel, image, block shape and class of grids; not of the device. Never 0.
uint64_t identity_of(const profiler::Key& key);

// ns that a block adds to a launch with all multiprocessors and the most CTAs that were measured on them; nothing: not measured.
std::optional<double> block_ns(const profiler::Profile& profile, int multiprocessors);

}  // namespace smt::runtime::profiles
