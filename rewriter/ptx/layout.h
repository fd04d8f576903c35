// How much room a variable or parameter takes, and where it may stand.
#pragma once

#include <cstdint>

#include "rewriter/ptx/syntax.h"

namespace smt::ptx {

uint64_t bytes_of(
    const Variable& variable);  // 0: an array of unknown size. It wraps where no memory is that large
uint32_t alignment_of(const Variable& variable);

}  // namespace smt::ptx
