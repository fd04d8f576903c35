#include "runtime/server/call.h"

#include "runtime/server/code/code_table.h"
#include "runtime/server/lane.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

Handles& handles_of(Session& session) { return session.handles(); }

CUresult Call::find_stream(uint32_t reference, StreamPointer* stream) {
    CUresult status = session.streams().find(reference, lane, stream);
    if (status != CUDA_SUCCESS) return status;
    lane.hold(*stream);
    if (session.streams().capturing((*stream)->handle)) uses.hold_captures();
    return CUDA_SUCCESS;
}

CUresult Call::launch_stream(uint32_t reference, StreamPointer* stream) {
    CUresult status = find_stream(reference, stream);
    if (status != CUDA_SUCCESS) return status;
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
    CUresult status = find_stream(reference, &found);
    if (status == CUDA_SUCCESS) *stream = found->handle;
    return status;
}

CUresult Call::event(uint32_t index, CUevent* event) {
    EventPointer found;
    CUresult status = session.events().find(index, &found);
    if (status != CUDA_SUCCESS) return status;
    lane.hold(found);
    *event = found.get();
    return CUDA_SUCCESS;
}

CUresult Call::function(uint32_t id, CUfunction* function) {
    kernel = std::make_shared<KernelUse>(session.code(), id);
    if (!*kernel) return CUDA_ERROR_INVALID_HANDLE;
    *function = (*kernel)->function;
    return CUDA_SUCCESS;
}

CUresult Call::module(uint32_t id, CUmodule* module) {
    image = session.code().image(id);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    image_lock = std::unique_lock(image->mutex);
    return session.code().module(*image, module);
}

CUcontext Call::context() const { return session.device().context(); }

}  // namespace smt::runtime::server
