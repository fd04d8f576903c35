#include "driver.gen.h"
#include "interpose/driver/call_despite_error.h"
#include "interpose/driver/capture.h"
#include "interpose/driver/context.h"
#include "interpose/driver/device.h"
#include "interpose/driver/objects.h"
#include "interpose/driver/order.h"
#include "interpose/driver/place.h"
#include "interpose/driver/ranges.h"
#include "interpose/driver/session_work.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/output.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose {

namespace {

// The results of cuStreamGetId for the default streams; created streams have the driver's own numbers.
constexpr unsigned long long kLegacyId = 1;
constexpr unsigned long long kPerThreadIds = 1ull << 40;
constexpr uint32_t kSessionShift = 48;  // each driver counts for itself

// Default streams have no object.
bool is_default(CUstream stream) { return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD; }

// Either a default stream (`object` null) or a live one.
bool look_up(CUstream stream, Stream*& object) {
    object = is_default(stream) ? nullptr : find_stream(stream);
    return object || is_default(stream);
}

// Sends one query about a stream, which the server answers with a status.
CUresult ask(protocol::Op op, CUstream stream) {
    uint32_t reference;
    if (!stream_ref(stream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult status = order_after(stream); status != CUDA_SUCCESS) return status;
    RemoteCall call(op, sizeof(protocol::StreamRef));
    if (!call.open()) return call.status();
    call.in(protocol::StreamRef{reference, 0});
    return call.wait();
}

// No GPU tells another one of its events: the thread waits, and what it enqueues later is behind the event.
CUresult wait_for_another_device(CUstream stream, const Event& event, CUevent handle) {
    if (event.captured.load(std::memory_order_relaxed)) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    if (any_capture_active()) {
        CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
        if (CUresult status = capture_status(stream, &capture); status != CUDA_SUCCESS) return status;
        if (capture != CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    const InSession in(event.session);
    return driver::cuEventSynchronize(handle);
}

}  // namespace

CUresult synchronize_stream(CUstream stream) {
    CUresult status = ask(protocol::Op::kStreamSynchronize, stream);
    after_sync();
    return status;
}

namespace driver {

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
    return driver::cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
    if (!stream || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING))) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult status = require_context(); status != CUDA_SUCCESS) return status;
    RemoteCall call(protocol::Op::kStreamCreate, sizeof(protocol::StreamCreate));
    if (!call.open()) return call.status();
    Stream* made = new_stream();
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    call.in(protocol::StreamCreate{flags, priority});
    CUresult status = call.wait();
    if (status != CUDA_SUCCESS) return release(made), status;
    protocol::StreamCreated created{};
    call.out(&created);
    made->id = created.stream;
    made->priority = created.priority;
    made->unique_id = created.id;
    made->flags = flags;
    made->context = current_context();
    *stream = reinterpret_cast<CUstream>(made);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    Stream* object = find_stream(stream);
    if (!object) return CUDA_ERROR_INVALID_HANDLE;
    CUresult earlier = order_after(stream);
    CUresult status =
        call_despite_error(protocol::Op::kStreamDestroy, protocol::StreamRef{object->id, 0}, earlier);
    if (status == CUDA_SUCCESS) forget_capture(stream), release(object);
    return earlier == CUDA_SUCCESS ? status : earlier;
}

CUresult cuStreamSynchronize(CUstream stream) {
    CUresult status = synchronize_stream(stream);
    return status == CUDA_SUCCESS ? pending_error() : status;
}

CUresult cuStreamQuery(CUstream stream) { return or_late_error(ask(protocol::Op::kStreamQuery, stream)); }

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
    uint32_t reference;
    Event* object = find_event(event);
    if (!object || !stream_ref(stream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    if (!is_here(*object)) return wait_for_another_device(stream, *object, event);
    if (CUresult status = order_after(*object); status != CUDA_SUCCESS) return status;
    if (CUresult status = order_after(stream); status != CUDA_SUCCESS) return status;
    RemoteCall call(protocol::Op::kStreamWaitEvent, sizeof(protocol::StreamWaitEvent));
    if (!call.open()) return call.status();
    call.in(protocol::StreamWaitEvent{reference, object->index, flags, 0});
    // event.cpp says why
    CUresult status = object->between_processes() ? or_late_error(call.wait()) : call.post();
    note_use(stream);
    note_use(*object);
    return status;
}

// Managed memory is pinned host memory, which every stream and the processor may always access, so there is
// nothing to attach.
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t, unsigned int flags) {
    Stream* object;
    Range range;
    if (!look_up(stream, object)) return CUDA_ERROR_INVALID_HANDLE;
    bool known =
        flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
    if (!known || !find_range(address, range) || range.memory != Memory::kManaged)
        return CUDA_ERROR_INVALID_VALUE;
    // The legacy stream stands for all streams, and is none to attach to alone.
    if (flags == CU_MEM_ATTACH_SINGLE && stream == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
    Stream* object;
    if (!priority) return CUDA_ERROR_INVALID_VALUE;
    if (!look_up(stream, object)) return CUDA_ERROR_INVALID_HANDLE;
    *priority = object ? object->priority : 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags) {
    Stream* object;
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    if (!look_up(stream, object)) return CUDA_ERROR_INVALID_HANDLE;
    *flags = object ? object->flags : static_cast<unsigned>(CU_STREAM_DEFAULT);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
    Stream* object;
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    if (!look_up(stream, object)) return CUDA_ERROR_INVALID_HANDLE;
    const uint64_t of_session = uint64_t{this_session().number()} << kSessionShift;
    if (object) {
        *id = of_session | object->unique_id;
    } else if (stream == CU_STREAM_LEGACY) {
        *id = of_session | kLegacyId;
    } else {
        CUresult status = CUDA_SUCCESS;
        Lane* lane = this_lane(status);
        if (!lane) return status;
        *id = of_session | (kPerThreadIds + lane->index);
    }
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
    Stream* object;
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (!look_up(stream, object)) return CUDA_ERROR_INVALID_HANDLE;
    *device = object ? object->session->device() : this_session().device();
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
    Stream* object;
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (!look_up(stream, object)) return CUDA_ERROR_INVALID_HANDLE;
    if (!object && require_context() != CUDA_SUCCESS) return CUDA_ERROR_INVALID_CONTEXT;
    *context = object ? object->context : current_context();
    return CUDA_SUCCESS;
}

}  // namespace driver

namespace adjust {

// The server takes it into the range.
CUresult cuStreamSetAttribute(CUresult status, CUstream stream, CUstreamAttrID attribute,
                              const CUstreamAttrValue*) {
    Stream* const object = find_stream(stream);
    if (status != CUDA_SUCCESS || attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY || !object) return status;
    CUstreamAttrValue now{};
    if (driver::cuStreamGetAttribute(stream, attribute, &now) == CUDA_SUCCESS)
        object->priority = now.priority;
    return status;
}

}  // namespace adjust

}  // namespace smt::interpose
