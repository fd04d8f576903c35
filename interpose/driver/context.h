// Contexts. All tenants share the server's one context, so a CUcontext here is a token: the primary context's
// is the real driver's own handle (which cudart checks), a created context's is ours. As in CUDA, the current
// contexts are a stack per thread.
#pragma once

#include <cuda.h>

#include "interpose/process/session.h"

namespace smt::interpose {

// The top of the calling thread's stack, or nullptr.
CUcontext current_context();
// SUCCESS, or INVALID_CONTEXT when the calling thread has none.
inline CUresult require_context() { return current_context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }
// A context of the session's device, for what belongs to one: the current one, or the primary one.
CUcontext context_of(const Session& session);
// Whether a context exists: a created one until it is destroyed, a primary one from the first retain to the
// last release or a reset.
bool is_active(CUcontext context);

}  // namespace smt::interpose
