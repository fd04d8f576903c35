// smt bench calls: where the time of a program's CUDA calls goes.
#pragma once

#include "tools/smt/command.h"

namespace smt::tools {

int bench_calls(const Arguments& arguments);  // what follows `smt bench calls`

}  // namespace smt::tools
