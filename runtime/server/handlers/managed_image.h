// The managed form of an image that a program loads (runtime/jit/): from its source where that was captured or
// indexed, else from its PTX. What has neither is opaque.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/jit/source.h"
#include "runtime/server/call.h"

namespace smt::runtime::server::handlers {

// To be loaded in place of `image`; null: load that one. Waits while it is compiled, SMT_COMPILE_WAIT at most.
// The journal has a line that says why, unless images without source are not to be managed. `captures` is
// ModuleLoad's.
jit::ResultPointer find_managed(Call& call, std::string_view image, uint32_t captures);

}  // namespace smt::runtime::server::handlers
