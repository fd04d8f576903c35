// The description of a launch for Measuring (measuring.h). Called only if the server measures.
#pragma once

#include "runtime/protocol/record.h"
#include "runtime/server/call.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/measuring.h"

namespace smt::runtime::server::handlers {

// `form`: the kernel's managed form, null: none. `managed`: it runs in that form. `parameters`: the
// program's, in the kernel's parameter layout.
Measuring::Launch describe_launch(Call& call, const LoadedKernel& kernel,
                                  const dispatch::ManagedFunction* form, const protocol::Launch& launch,
                                  const char* parameters, bool managed);

}  // namespace smt::runtime::server::handlers
