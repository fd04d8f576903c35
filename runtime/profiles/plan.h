// The plan of `smt profile --sweep`: with how many CTAs on how many multiprocessors a kernel is measured.
// Pure functions.
//
// It covers three curves. Time against CTAs on each of all multiprocessors (Adaptive Simultaneous
// Multi-tenancy, 3.5). The same on one multiprocessor, from which saturation is found (smCompactor, 3.4;
// models/saturation.h). And all CTAs that fit on 1, 2, 4 ... multiprocessors, which checks the saturation
// model.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/store/profile.h"

namespace smt::runtime::profiles {

// In the order of measurement, each once: all multiprocessors first, from most CTAs to one.
std::vector<profiler::Placement> placements(int multiprocessors, int most_ctas);

// Samples of each placement. All CTAs on all multiprocessors: one; a whole launch that `smt profile` has
// measured counts, and tells more.
inline constexpr int64_t kSamples = 3;
int64_t samples_wanted(const profiler::Placement& placement, int multiprocessors, int most_ctas);
// Blocks of a launch that make a sample: kRounds rounds of all CTAs, so that the last, uneven round hardly
// counts. More for short blocks, since workers take some microseconds to begin. Fewer for long blocks, since
// a launch has few of them and the plan needs many samples, but at least kLeastRounds.
inline constexpr uint64_t kRounds = 8;
inline constexpr uint64_t kLeastRounds = 2;
inline constexpr uint64_t kLeastSampleNs = 200'000;
inline constexpr uint64_t kMostSampleNs = 4'000'000;
uint64_t sample_blocks(const profiler::Placement& placement, uint64_t block_ns);

// A server that measures pairs (SMT_PROFILE=pairs; dispatch/pairing.h) writes a summary to its journal when a
// stream leaves. The summary begins with kSideBySide, and ends with kNothingMissing once all is measured.
inline constexpr char kSideBySide[] = "side by side: ";
inline constexpr char kNothingMissing[] = "nothing is missing";

}  // namespace smt::runtime::profiles
