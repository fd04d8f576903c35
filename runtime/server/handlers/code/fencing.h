// Fenced images and launches of their kernels (runtime/server/memory/fence.h). Of a session without a fence
// all of this does nothing.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "runtime/jit/opened.h"
#include "runtime/server/call.h"

namespace smt::runtime::server {
struct Image;
struct LoadedKernel;
}  // namespace smt::runtime::server

namespace smt::runtime::server::handlers {

// An image that was just loaded gets the address of its session's fence, and the log a line for each kernel
// that is refused. On failure it is unloaded again. NOT_SUPPORTED: it has variables that are not in the
// session's memory.
CUresult close_fence(Call& call, Image& image, uint32_t object, std::vector<jit::FencedFunction> fenced);
// The same for a managed form that is loaded beside its image.
CUresult give_fence(Call& call, CUmodule module, uint64_t object);

// NOT_SUPPORTED, which is counted: the kernel was refused.
CUresult may_launch_fenced(Call& call, const LoadedKernel& kernel);

}  // namespace smt::runtime::server::handlers
