// Runs a program again and again under servers of its own, and measures its kernels: `smt profile --
// PROGRAM`.
//
//   times      once: when each launch ran
//   counters   once: what the kernels did
//   sweep      until each managed kernel was measured with all CTAs and SMs of the plan, or nothing new comes
//   stops      until each managed kernel was stopped so often (kStops), or nothing new comes
//
// Each run has a server of its own in a runtime folder of its own, so no other programs use it; what it
// measures is in the store when that server has left.
#pragma once

#include <string>
#include <vector>

#include "profiler/store/store.h"

namespace smt::tools {

inline constexpr int64_t kStops = 50;

struct ProfileRequest {
    std::vector<std::string> command;
    std::string device;  // of smt run --device; empty: its choice
    bool sweep = false;
    bool counters = true;
    int most_runs = 12;  // of each kind that is repeated
    int64_t stops = kStops;
};

// The profiles of the kernels that the program launched. Progress and what could not be measured goes to
// stderr. Throws Failure.
std::vector<profiler::Profile> measure_program(const ProfileRequest& request, profiler::Store& store);

}  // namespace smt::tools
