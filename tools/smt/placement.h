// `smt run --gpu`: places the program that this process becomes on one of several GPUs.
//
// A program has a session at its first CUDA call only. Until then it counts by a line in the file `placed` of
// the runtime folder, so that programs which start at the same time do not all see the same idle GPU. A
// line's process is the program's, since `smt run` becomes it; it is dropped when that has ended. For a
// program that something else will begin (`smt run --env`) the line counts for a minute.
#pragma once

#include <string>
#include <vector>

#include "tools/smt/gpus.h"

namespace smt::tools {

enum class Begins { kHere, kElsewhere };  // kHere: this process becomes the program

// `needed`: bytes of device memory; 0: not known. Both throw Failure: the file cannot be written.

// --gpu any (gpu_choice.h). Throws Failure: no GPU could ever hold `needed`.
Gpu place_program(const std::vector<Gpu>& gpus, uint64_t needed, Begins where);
// --gpu N: the program is on that GPU.
void note_program(const Gpu& gpu, uint64_t needed, Begins where);

}  // namespace smt::tools
