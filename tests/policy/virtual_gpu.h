// The GPU in virtual time, beside the tables.
#pragma once

#include "tests/policy/snapshots.h"
#include "tools/fleet/virtual_gpu.h"

namespace smt::tests {

using namespace fleet;
static_assert(VirtualGpu::kBegin == kBegin);

}  // namespace smt::tests
