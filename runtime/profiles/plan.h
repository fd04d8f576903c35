// With how many CTAs on how many multiprocessors a kernel is measured: `smt profile --sweep`.
//
// The curve of time against CTAs on each of all multiprocessors (Adaptive Simultaneous Multi-tenancy, 3.5); the same on one
// multiprocessor, which is what saturation is found from (smCompactor, 3.4; models/saturation.h); and all CTAs that fit on 1, 2, 4 ...
// multiprocessors, which shows whether that is so.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/store/profile.h"

namespace smt::runtime::profiles {

// In the order in which they are measured, each once: all multiprocessors first, from most CTAs to one.
std::vector<profiler::Placement> placements(int multiprocessors, int most_ctas);

// Times that each is measured. All CTAs on all multiprocessors: once, if `smt profile` has not seen whole launches so, which tell more.
inline constexpr int64_t kSamples = 3;
int64_t samples_wanted(const profiler::Placement& placement, int multiprocessors, int most_ctas);
// Blocks of a launch that make a sample: so many rounds of all CTAs, so that the last, uneven one hardly counts; more for short blocks,
// since workers take some microseconds to begin; fewer for long ones, of which a launch has few and the plan asks for many, but two.
inline constexpr uint64_t kRounds = 8;
inline constexpr uint64_t kLeastRounds = 2;
inline constexpr uint64_t kLeastSampleNs = 200'000;
inline constexpr uint64_t kMostSampleNs = 4'000'000;
uint64_t sample_blocks(const profiler::Placement& placement, uint64_t block_ns);

// What a server that measures pairs (SMT_PROFILE=pairs; dispatch/pairing.h) says in its journal as each stream leaves begins with this, and ends with that where all is measured.
inline constexpr char kSideBySide[] = "side by side: ";
inline constexpr char kNothingMissing[] = "nothing is missing";

}  // namespace smt::runtime::profiles
