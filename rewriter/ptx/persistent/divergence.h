// Whether some threads of a team (a block, a warp) may leave a kernel while others of it still come to an
// operation in which the team's threads take part together.
//
// On hardware no operation waits for a thread that has exited. In a worker's loop such a thread only leaves
// the loop's body. So where the answer is yes, a worker runs one block, and its threads really end.
//
//   @%p1 bra END;  bar.sync 0;  END: ret;      %p1 made of %tid: yes.  %p1 made of a parameter: no.
//
// Let W be such an operation. Two threads run alike up to a branch at which they part, and again from where
// its sides meet. If one of them can come to W before they meet, and the other can leave without W and
// without a barrier that would hold it, the answer is yes. Only a branch whose condition may differ between
// threads of a block parts them. A register may differ if anything that is written to it may, or if it is
// written where only some threads may come by. What is loaded from memory may differ, unless no
// thread writes it meanwhile.
#pragma once

#include "rewriter/ptx/persistent/control_flow.h"
#include "rewriter/ptx/persistent/uniformity.h"

namespace smt::ptx::persistent {

// Of a function that kernels call, leaving is returning. `wide`: the operation is one of the whole team. What
// is said of warps holds where a block is a whole number of warps wide.
bool leaves_early(const Function& function, const Test& wide, Team team);

// The blocks by which only some of a team's threads may come, or all at different times. `graph`: of its
// body.
std::vector<bool> apart(const Function& function, const Graph& graph, Team team);

// A barrier that waits for every thread of the block which has not left.
bool waits_for_all(const Instruction& instruction);

}  // namespace smt::ptx::persistent
