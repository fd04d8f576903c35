// Kernels that get the address of a __constant__ variable (memory/watched_constants.h).
#pragma once

#include "runtime/server/call.h"

namespace smt::runtime::server {
struct LoadedKernel;
}

namespace smt::runtime::server::handlers {

// Of the parameters of a launch or a node. False: they name a __constant__ variable by an address that is
// none any more, since a takeover, which is noted.
bool may_launch_with(Call& call, const LoadedKernel& kernel, const char* parameters);

}  // namespace smt::runtime::server::handlers
