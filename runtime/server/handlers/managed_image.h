// The managed form of an image that a program loads (runtime/jit/): from its source where that was captured or
// indexed, else from its PTX. What has neither is opaque.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/jit/source.h"
#include "runtime/server/call.h"

namespace smt::runtime::server::handlers {

struct ManagedImage {
    jit::ResultPointer compiled;   // to be loaded in place of the program's; null: load that one
    std::string reason;            // why there is none
    jit::ResultPointer refused;    // and what was said about its kernels, if they were looked at
};

// Waits while it is compiled, SMT_COMPILE_WAIT at most. The journal has a line with the reason, unless images
// without source are not to be managed. `captures` is ModuleLoad's.
ManagedImage find_managed(Call& call, std::string_view image, uint32_t captures);

}  // namespace smt::runtime::server::handlers
