// Translates a stored profile into the terms of policies (schedule/profile.h). Pure functions.
//
// Parts that were not measured are left out, so that the policies' own rules for missing parts apply. A curve
// needs two numbers of CTAs: from one number `greedy` would conclude that a kernel can have only that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "profiler/store/profile.h"
#include "runtime/profiles/device_facts.h"
#include "runtime/schedule/profile.h"

namespace smt::runtime::profiles {

// A kernel counts as saturated at this loss of throughput against the best: smCompactor's "no more than a few
// per cent".
inline constexpr double kSaturationLoss = 0.05;

// The times are for a launch of 2^grid_class blocks. `of_shape`: all profiles of that kernel and block shape.
// If `profile` has no counters, the instruction mix comes from one of these, since it does not depend on the
// grid. What was learnt stands in where nothing was measured, and is marked.
schedule::Profile translate(const profiler::Profile& profile, const std::vector<profiler::Profile>& of_shape,
                            const DeviceFacts& facts);

// The peaks for utilization: the device's, at the clock at which the counters were taken.
profiler::models::Peak peak_of(const profiler::Profile& profile, const DeviceFacts& facts);

// Of the kernel, image, block shape and class of grids, but not of the device. Never 0.
uint64_t identity_of(const profiler::Key& key);

// ns that a block adds to a launch on all multiprocessors, with the most CTAs measured there; nothing: not
// measured.
std::optional<double> block_ns(const profiler::Profile& profile, int multiprocessors);

}  // namespace smt::runtime::profiles
