// Runs two programs under servers of their own, and measures their kernels side by side: `smt profile --pair
// -- PROGRAM -- PROGRAM`.
//
//   times          each program once, alone: rates beside another are told as parts of those alone
//   side by side   both at the same time, until each two of their kernels were measured with each full
//   combination of CTAs (dispatch/pairing.h), or
//                  nothing new comes
#pragma once

#include <array>
#include <string>
#include <vector>

#include "profiler/store/store.h"

namespace smt::tools {

struct PairRequest {
    std::array<std::vector<std::string>, 2> commands;
    std::string device;  // of smt run --device; empty: its choice
    int most_runs = 12;  // of both at the same time
};

// The profiles of the kernels that either program launched. Progress and what could not be measured goes to
// stderr. Throws Failure, also if nothing was measured of any two.
std::vector<profiler::Profile> measure_pair(const PairRequest& request, profiler::Store& store);

}  // namespace smt::tools
