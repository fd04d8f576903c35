// The one place that knows whether this build has the PTX rewriter (rewriter/ptx/persistent/).
#pragma once

#include <string>

#include "runtime/jit/source.h"

namespace smt::runtime::jit {

// The module with managed forms, or a reason why there are none. In a build without nvcc that is the reason.
Result rewrite_ptx(const Order& order);

}  // namespace smt::runtime::jit
