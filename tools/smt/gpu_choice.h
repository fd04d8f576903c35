// Which GPU a program gets by `smt run --gpu any`.
//
// A GPU whose memory could never hold what the program needs is out. Of the others those count on which it
// fits now, if there are any. Among these goes first the GPU
//
//   1. with the fewest programs,
//   2. whose multiprocessors were busy for the smallest part of the last seconds, in tenths,
//   3. with the most free memory,
//   4. with the lowest number.
//
// Programs come before what they use, because use says little of what they want: one that was just placed has
// used nothing yet, and one that computes all the time uses no less alone than two do together.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace smt::tools {

struct GpuLoad {
    uint64_t total_bytes = 0;  // 0: not known, and anything fits
    uint64_t free_bytes = 0;   // not held, and not set aside for programs that have a limit
    unsigned programs = 0;     // with those that were placed there and have no session yet
    double busy = 0;           // part of the multiprocessors' time, 0 to 1; 0: not known
};

// `needed`: bytes; 0: not known. The number of the GPU in `loads`; nothing: none could ever hold it.
std::optional<size_t> choose_gpu(const std::vector<GpuLoad>& loads, uint64_t needed);

}  // namespace smt::tools
