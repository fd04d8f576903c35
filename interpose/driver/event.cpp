// Events. Creating, recording and destroying one are fire-and-forget records. Completion is read from the
// event's completion word, which the GPU writes after the event once the program has queried it (`watched`).
// Measured: a word costs the server fifteen times as much as the event alone, and most events only order
// streams. The first query, and every synchronisation without a written word, goes to the server.
//
// An event of several processes (CU_EVENT_INTERPROCESS) is always asked for: its records may be another
// process's. Its records and the waits for it return when the server has made them, as another process may be
// told that they are there.
//
// Nor does the client see when a graph records an event: one that a graph may record (`by_graph`) is always
// asked for, too.
//
// The word counts records: record n stores n. Two records of one event on two streams may complete in the
// other order, which would leave the older number in the word. Such an event is `contested` for the rest of
// its life and queries the server instead.
#include "driver.gen.h"
#include "interpose/driver/capture.h"
#include "interpose/driver/context.h"
#include "interpose/driver/objects.h"
#include "interpose/driver/order.h"
#include "interpose/driver/place.h"
#include "interpose/process/session.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/output.h"
#include "interpose/transport/remote_call.h"
#include "interpose/transport/waiting.h"

namespace smt::interpose {

namespace {

constexpr unsigned kCreateFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

CUresult post_reference(protocol::Op op, Event& event, uint32_t flags) {
    if (CUresult status = order_after(event); status != CUDA_SUCCESS) return status;
    RemoteCall call(op, sizeof(protocol::EventRef));
    if (!call.open()) return call.status();
    call.in(protocol::EventRef{event.index, flags});
    CUresult status = call.post_quietly();
    note_use(event);
    return status;
}

CUresult ask_server(Event& event, uint32_t flags) {
    if (CUresult status = order_after(event); status != CUDA_SUCCESS) return status;
    RemoteCall call(protocol::Op::kEventSynchronize, sizeof(protocol::EventRef));
    if (!call.open()) return call.status();
    call.in(protocol::EventRef{event.index, flags});
    return call.wait();
}

// Others than this process's streams may record it.
bool recorded_elsewhere(const Event& event) {
    return event.between_processes() || event.by_graph.load(std::memory_order_relaxed) != 0;
}

bool complete(Event& event, uint64_t value) {
    return event.session->completion_word(event.index).load(std::memory_order_acquire) >= value;
}

// The number of the next record; marks the event contested if an older record may still complete after it.
uint64_t begin_record(Event& event, CUstream stream, bool watched) {
    uint64_t before =
        event.unwritten.load(std::memory_order_relaxed) ? 0 : event.recorded.load(std::memory_order_relaxed);
    event.unwritten.store(!watched, std::memory_order_relaxed);
    bool other = stream == CU_STREAM_PER_THREAD || event.stream.load(std::memory_order_relaxed) != stream;
    if (before != 0 && other && !complete(event, before)) event.contested.store(1, std::memory_order_relaxed);
    event.stream.store(stream, std::memory_order_relaxed);
    return event.next_value.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

namespace driver {

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
    if (!event) return CUDA_ERROR_INVALID_VALUE;
    if (flags & ~kCreateFlags) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    if (CUresult status = require_context(); status != CUDA_SUCCESS) return status;
    Event* made = new_event();
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    made->flags = flags;
    // The slot's former event was destroyed with its record in flight: its write may come late.
    if (!complete(*made, made->written.load(std::memory_order_relaxed)))
        made->contested.store(1, std::memory_order_relaxed);
    CUresult status = post_reference(protocol::Op::kEventCreate, *made, flags);
    if (status != CUDA_SUCCESS) return release(made), status;
    *event = reinterpret_cast<CUevent>(made);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
    Event* object = find_event(event);
    if (!object) return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = post_reference(protocol::Op::kEventDestroy, *object, 0);
    if (status == CUDA_SUCCESS) release(object);
    return or_late_error(status);
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    return driver::cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
    Event* object = find_event(event);
    uint32_t reference;
    if (!object || !is_here(*object) || !stream_ref(stream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    bool captured = false;
    if (any_capture_active()) {
        CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
        if (CUresult status = capture_status(stream, &capture); status != CUDA_SUCCESS) return status;
        captured = capture != CU_STREAM_CAPTURE_STATUS_NONE;
    }
    if (CUresult status = order_after(*object); status != CUDA_SUCCESS) return status;
    if (CUresult status = order_after(stream); status != CUDA_SUCCESS) return status;
    RemoteCall call(protocol::Op::kEventRecord, sizeof(protocol::EventRecord));
    if (!call.open()) return call.status();
    bool watched = object->watched.load(std::memory_order_relaxed) != 0 && !recorded_elsewhere(*object);
    uint64_t value = captured ? 0 : begin_record(*object, stream, watched);
    call.in(protocol::EventRecord{object->index, reference, flags, watched, value});
    CUresult status = object->between_processes() ? or_late_error(call.wait()) : call.post();
    if (!captured) object->recorded.store(value, std::memory_order_relaxed);
    if (!captured && watched) object->written.store(value, std::memory_order_relaxed);
    // An external record in a capture becomes a node, which records the event at each launch.
    const bool external = (flags & CU_EVENT_RECORD_EXTERNAL) != 0;
    object->captured.store(captured && !external, std::memory_order_relaxed);
    if (captured && external) object->by_graph.store(1, std::memory_order_relaxed);
    note_use(stream);
    note_use(*object);
    return status;
}

CUresult cuEventQuery(CUevent event) {
    Event* object = find_event(event);
    if (!object) return CUDA_ERROR_INVALID_HANDLE;
    if (object->captured.load(std::memory_order_relaxed)) return CUDA_ERROR_CAPTURED_EVENT;
    if (captures_under_way.load(std::memory_order_relaxed) != 0) [[unlikely]]
        if (CUresult status = check_unsafe_call(); status != CUDA_SUCCESS) return status;
    object->watched.store(1, std::memory_order_relaxed);
    if (recorded_elsewhere(*object) || object->contested.load(std::memory_order_relaxed) ||
        object->unwritten.load(std::memory_order_relaxed))
        return or_late_error(ask_server(*object, protocol::kEventQueryOnly));
    uint64_t value = object->recorded.load(std::memory_order_relaxed);
    // The GPU writes the word behind the event, so the server may know of its end before.
    const bool awaited = object->awaited.load(std::memory_order_relaxed) == value;
    if (value == 0 || awaited || complete(*object, value)) return object->session->sticky_error();
    // A loop of queries sends nothing, so it must check for errors here.
    if (CUresult status = pending_error(); status != CUDA_SUCCESS) return status;
    return object->session->server_lives_sometimes() ? CUDA_ERROR_NOT_READY : object->session->sticky_error();
}

CUresult cuEventSynchronize(CUevent event) {
    Event* object = find_event(event);
    if (!object) return CUDA_ERROR_INVALID_HANDLE;
    if (object->captured.load(std::memory_order_relaxed)) return CUDA_ERROR_CAPTURED_EVENT;
    uint64_t value = object->recorded.load(std::memory_order_relaxed);
    if (value == 0 && !recorded_elsewhere(*object)) return object->session->sticky_error();
    // For kernels that print, only the server can make the driver flush the output.
    bool by_word = !recorded_elsewhere(*object) && !object->contested.load(std::memory_order_relaxed) &&
                   !object->unwritten.load(std::memory_order_relaxed) &&
                   object->session->header()->printing.load(std::memory_order_relaxed) == 0;
    if (by_word && spin_word(object->index, value)) return pending_error();
    CUresult status = ask_server(*object, 0);
    if (status == CUDA_SUCCESS) object->awaited.store(value, std::memory_order_relaxed);
    after_sync();
    return status == CUDA_SUCCESS ? pending_error() : status;
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    Event* first = find_event(start);
    Event* last = find_event(end);
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    if (!first || !last || !is_here(*first) || !is_here(*last)) return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult status = order_after(*first); status != CUDA_SUCCESS) return status;
    if (CUresult status = order_after(*last); status != CUDA_SUCCESS) return status;
    RemoteCall call(protocol::Op::kEventElapsed, sizeof(protocol::EventPair));
    if (!call.open()) return call.status();
    call.in(protocol::EventPair{first->index, last->index});
    CUresult status = call.wait();
    if (status == CUDA_SUCCESS) call.out(milliseconds);
    return status;
}

}  // namespace driver

}  // namespace smt::interpose
