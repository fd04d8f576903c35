// Fills, and copies within device memory, behind launches with doors.
#pragma once

#include <cuda.h>

#include <functional>

#include "runtime/dispatch/moves.h"
#include "runtime/server/call.h"

namespace smt::runtime::server::handlers {

// Launches the kernel that `plan` names (dispatch/moves.h), where the driver's own fill or copy would have to
// wait until what is in flight can pass. NOT_SUPPORTED: nothing was done, and the driver is to be asked,
// after the stream's guard.
using PlanMove = std::function<CUresult(dispatch::Moves& moves, dispatch::MoveLaunch* launch)>;
CUresult launch_move(Call& call, Stream& stream, const PlanMove& plan);

}  // namespace smt::runtime::server::handlers
