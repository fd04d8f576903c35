#include "runtime/server/handlers/code/launch_constants.h"

#include "runtime/server/code/code_table.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

bool may_launch_with(Call& call, const LoadedKernel& kernel, const char* parameters) {
    using Named = WatchedConstants::Named;
    if (call.session.memory().own().constants().meet_in(parameters, kernel.parameter_bytes) != Named::kMoved)
        return true;
    call.session.note("a launch of " + kernel.name +
                      " is refused: it names a __constant__ variable, which lies elsewhere since a takeover");
    return false;
}

}  // namespace smt::runtime::server::handlers
