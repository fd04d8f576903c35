#include "runtime/server/call.h"

#include "runtime/server/handlers/code_table.h"
#include "runtime/server/lane.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

CUresult Call::launch_stream(uint32_t reference, StreamPointer* stream) {
    CUresult status = session.streams().find(reference, lane, stream);
    if (status != CUDA_SUCCESS) return status;
    lane.hold(*stream);
    status = session.streams().prepare_launch(**stream);
    if (status != CUDA_SUCCESS) return status;
    lane.uses(**stream);
    return CUDA_SUCCESS;
}

CUresult Call::stream(uint32_t reference, CUstream* stream) {
    StreamPointer found;
    CUresult status = launch_stream(reference, &found);
    if (status == CUDA_SUCCESS) status = found->guard();
    if (status == CUDA_SUCCESS) *stream = found->handle;
    return status;
}

CUresult Call::plain_stream(uint32_t reference, CUstream* stream) {
    StreamPointer found;
    CUresult status = session.streams().find(reference, lane, &found);
    if (status != CUDA_SUCCESS) return status;
    lane.hold(found);
    *stream = found->handle;
    return CUDA_SUCCESS;
}

CUresult Call::event(uint32_t index, CUevent* event) {
    EventPointer found;
    CUresult status = session.events().find(index, &found);
    if (status != CUDA_SUCCESS) return status;
    lane.hold(found);
    *event = found.get();
    return CUDA_SUCCESS;
}

CUresult Call::function(uint32_t id, CUfunction* function) { return session.code().function(id, function); }
CUresult Call::module(uint32_t id, CUmodule* module) { return session.code().module(id, module); }

CUresult Call::owned(HandleKind kind, uint64_t handle) const {
    return session.handles().owned(kind, handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
void Call::adopt(HandleKind kind, uint64_t handle) { session.handles().adopt(kind, handle); }
void Call::lend(HandleKind kind, uint64_t handle) { session.handles().lend(kind, handle); }
void Call::forget(HandleKind kind, uint64_t handle) { session.handles().forget(kind, handle); }
CUcontext Call::context() const { return session.device().context(); }

}  // namespace smt::runtime::server
