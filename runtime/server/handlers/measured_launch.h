// What Measuring (measuring.h) wants to know of a launch. Asked only where the server measures.
#pragma once

#include "runtime/protocol/record.h"
#include "runtime/server/call.h"
#include "runtime/server/handlers/code_table.h"
#include "runtime/server/measuring.h"

namespace smt::runtime::server::handlers {

// `managed`: it goes in managed form. `parameters`: the program's, laid out as the kernel says.
Measuring::Launch describe_launch(Call& call, const LoadedKernel& kernel, const protocol::Launch& launch, const char* parameters, bool managed);

}  // namespace smt::runtime::server::handlers
