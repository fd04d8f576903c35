// The worker's opening of images: as open_image(), and kernels of cubins get the door
// (rewriter/machine_code).
#pragma once

#include <string_view>

#include "runtime/jit/opened.h"

namespace smt::runtime::jit {

// The prologues are assembled by nvPTXCompiler, and kept for the process. Managed forms get no door.
Opened open_with_doors(const OpenOrder& asked, std::string_view image);

}  // namespace smt::runtime::jit
