// Managed forms that are made while the program runs (runtime/server/code/late_form.h).
//
// The launches of the image's kernels look whether the form is there: no thread waits for it, so nothing is
// left of a session that ends meanwhile. The launch that finds the form, and all work of the session
// complete, loads it, as a program's load is done; launches of other lanes go on in the program's form.
// The work has to be complete because the driver's load would wait for it, and the program may be what ends
// it. Where a stream of any session waits for its program, the load waits for another launch.
#pragma once

#include "runtime/server/call.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/code/jit_options.h"

namespace smt::runtime::server::handlers {

// For an image that was just added. `form`: awaited, or not yet machine code. `own`: of what the program
// gave. `jit`: of its load.
void await_form(Call& call, uint32_t object, jit::Decision form, const jit::OwnForm& own,
                const JitOptions& jit);

// Before a launch of a kernel whose image awaits its form. Afterwards the kernel may have it. The kernel is
// held, and no lock.
void look_for_form(Call& call, const LoadedKernel& kernel);

}  // namespace smt::runtime::server::handlers
