// Streams, each a thread that does its work in order, and events and host functions on them.
#include <time.h>

#include <algorithm>
#include <unordered_map>

#include "runtime/device/hosted/backend.h"

namespace smt::runtime::device::hosted {

namespace {

struct Event {
    unsigned flags = 0;
    uint64_t recorded = 0;   // records so far
    uint64_t completed = 0;  // of which so many are complete
    double time_ms = 0;
    std::shared_ptr<Capture> capture;  // of its last record
    std::vector<Node*> nodes;
};

struct StreamsState {
    std::unordered_map<CUstream, std::shared_ptr<Stream>> streams;
    std::shared_ptr<Stream> default_stream;
    std::unordered_map<CUevent, std::shared_ptr<Event>> events;
    uint64_t next_id = 1;
};

StreamsState& streams_state() {
    static StreamsState* state = new StreamsState;
    return *state;
}

int within_range(int priority) { return std::clamp(priority, -5, 0); }

std::shared_ptr<Stream> start_stream(unsigned flags, int priority, Places places = nullptr) {
    auto stream = backend().make_stream();
    stream->flags = flags;
    stream->priority = priority;
    stream->places = std::move(places);
    stream->id = streams_state().next_id++;
    backend().opened(stream);
    return stream;
}

std::shared_ptr<Event> find_event(CUevent handle) {
    auto found = streams_state().events.find(handle);
    return found == streams_state().events.end() ? nullptr : found->second;
}

}  // namespace

CUstream make_stream(unsigned flags, int priority, Places places) {
    auto stream = start_stream(flags, within_range(priority), std::move(places));
    const auto handle = reinterpret_cast<CUstream>(stream.get());
    streams_state().streams[handle] = std::move(stream);
    return handle;
}

std::shared_ptr<Stream> find_stream(CUstream handle) {
    if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        if (!streams_state().default_stream) streams_state().default_stream = start_stream(0, 0);
        return streams_state().default_stream;
    }
    auto found = streams_state().streams.find(handle);
    return found == streams_state().streams.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Stream>> all_streams() {
    std::vector<std::shared_ptr<Stream>> all;
    for (auto& [handle, stream] : streams_state().streams) all.push_back(stream);
    if (streams_state().default_stream) all.push_back(streams_state().default_stream);
    return all;
}

void append(Stream& stream, std::shared_ptr<Node> node) {
    stream.queue.push_back(std::move(node));
    ++stream.enqueued;
    backend().submitted(stream);
}

void finish_front(Stream& stream) {
    stream.queue.pop_front();
    ++stream.done;
    changed().notify_all();
}

CUresult enqueue(CUstream handle, std::unique_ptr<Node> node) {
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) return add_captured(*stream, std::move(node));
    append(*stream, std::move(node));
    return CUDA_SUCCESS;
}

CUresult enqueue(CUstream stream, CUgraphNodeType type, Work work) {
    auto node = std::make_unique<Node>();
    node->type = type;
    node->work = std::move(work);
    return enqueue(stream, std::move(node));
}

CUresult perform(CUstream handle, std::unique_ptr<Node> node) {
    const CUresult status = enqueue(handle, std::move(node));
    Lock lock(world());
    auto stream = find_stream(handle);
    if (status != CUDA_SUCCESS || !stream || stream->capture) return status;
    wait_idle(lock, *stream);
    lock.unlock();
    return asked("synchronized");
}

void wait_idle(Lock& lock, const Stream& stream) {
    const uint64_t last = stream.enqueued;
    backend().await(lock, [&] { return stream.done >= last; });
}

}  // namespace smt::runtime::device::hosted

using namespace smt::runtime::device::hosted;

DRIVER_EXPORT CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned flags, int priority) {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuStreamCreateWithPriority, "flags=%u priority=%d", flags, priority);
    Lock lock(world());
    *handle = make_stream(flags, priority, nullptr);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuStreamCreate(CUstream* handle, unsigned flags) {
    return cuStreamCreateWithPriority(handle, flags, 0);
}
DRIVER_EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
    DRIVER_ASKED(cuStreamDestroy_v2);
    Lock lock(world());
    auto found = streams_state().streams.find(handle);
    if (found == streams_state().streams.end()) return CUDA_ERROR_INVALID_HANDLE;
    found->second->closing = true;
    backend().submitted(*found->second);
    streams_state().streams.erase(found);
    changed().notify_all();
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuStreamSynchronize(CUstream handle) {
    DRIVER_ASKED(cuStreamSynchronize);
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) return break_capture(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    wait_idle(lock, *stream);
    lock.unlock();
    DRIVER_ASKED(synchronized);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuStreamQuery(CUstream handle) {
    DRIVER_ASKED(cuStreamQuery);
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) return break_capture(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return stream->done == stream->enqueued ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
DRIVER_EXPORT CUresult cuCtxSynchronize() {
    DRIVER_ASKED(cuCtxSynchronize);
    Lock lock(world());
    for (auto& stream : all_streams()) wait_idle(lock, *stream);
    lock.unlock();
    DRIVER_ASKED(synchronized);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuStreamGetPriority(CUstream handle, int* priority) {
    if (!priority) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuStreamGetPriority);
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}
// The priority is the only attribute.
DRIVER_EXPORT CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute,
                                            CUstreamAttrValue* value) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY) return CUDA_ERROR_NOT_SUPPORTED;
    return cuStreamGetPriority(handle, &value->priority);
}
DRIVER_EXPORT CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                                            const CUstreamAttrValue* value) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuStreamSetAttribute, "attribute=%d", attribute);
    if (attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY) return CUDA_ERROR_NOT_SUPPORTED;
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    stream->priority = within_range(value->priority);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuStreamGetFlags(CUstream handle, unsigned* flags) {
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuStreamGetFlags);
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuStreamGetId);
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    *id = stream->id;
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
    DRIVER_ASKED(cuLaunchHostFunc);
    auto node = std::make_unique<Node>();
    node->type = CU_GRAPH_NODE_TYPE_HOST;
    node->host = {function, data};
    node->work = [function, data] { function(data); };
    return enqueue(stream, std::move(node));
}

static void complete(Event& event, uint64_t ticket) {
    Lock lock(world());
    event.time_ms = backend().now_ms();
    if (event.completed < ticket) event.completed = ticket;
    changed().notify_all();
}

namespace smt::runtime::device::hosted {

std::unique_ptr<Node> event_node(CUgraphNodeType type, CUevent handle) {
    if (!find_event(handle)) return nullptr;
    auto node = std::make_unique<Node>();
    node->type = type;
    node->event = handle;
    return node;
}

std::unique_ptr<Node> event_work(CUgraphNodeType type, CUevent handle) {
    auto event = find_event(handle);
    if (!event) return nullptr;
    auto node = std::make_unique<Node>();
    node->type = type;
    const bool waits = type == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    const uint64_t ticket = waits ? event->recorded : ++event->recorded;
    if (waits)
        node->ready = [event, ticket] { return event->completed >= ticket; };
    else
        node->work = [event, ticket] { complete(*event, ticket); };
    return node;
}

}  // namespace smt::runtime::device::hosted

DRIVER_EXPORT CUresult cuEventCreate(CUevent* handle, unsigned flags) {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuEventCreate, "flags=%u", flags);
    Lock lock(world());
    auto event = std::make_shared<Event>();
    event->flags = flags;
    *handle = reinterpret_cast<CUevent>(event.get());
    streams_state().events[*handle] = event;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuEventDestroy_v2(CUevent handle) {
    DRIVER_ASKED(cuEventDestroy_v2);
    Lock lock(world());
    return streams_state().events.erase(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
DRIVER_EXPORT CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned flags) {
    DRIVER_ASKED(cuEventRecordWithFlags);
    Lock lock(world());
    auto event = find_event(handle);
    auto stream = find_stream(stream_handle);
    if (!event || !stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture && flags != CU_EVENT_RECORD_EXTERNAL) {
        if (stream->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        event->capture = stream->capture;
        event->nodes = stream->tail;
        return CUDA_SUCCESS;
    }
    event->capture.reset();
    // What is captured records when its graph runs, each time.
    if (stream->capture) return add_captured(*stream, event_node(CU_GRAPH_NODE_TYPE_EVENT_RECORD, handle));
    append(*stream, event_work(CU_GRAPH_NODE_TYPE_EVENT_RECORD, handle));
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
    return cuEventRecordWithFlags(event, stream, 0);
}
DRIVER_EXPORT CUresult cuEventQuery(CUevent handle) {
    DRIVER_ASKED(cuEventQuery);
    Lock lock(world());
    auto event = find_event(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture) return break_capture(*event->capture, CUDA_ERROR_CAPTURED_EVENT);
    return event->completed >= event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
DRIVER_EXPORT CUresult cuEventSynchronize(CUevent handle) {
    DRIVER_ASKED(cuEventSynchronize);
    Lock lock(world());
    auto event = find_event(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture) return break_capture(*event->capture, CUDA_ERROR_CAPTURED_EVENT);
    const uint64_t ticket = event->recorded;
    backend().await(lock, [&] { return event->completed >= ticket; });
    lock.unlock();
    DRIVER_ASKED(synchronized);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start_handle, CUevent end_handle) {
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuEventElapsedTime_v2);
    Lock lock(world());
    auto start = find_event(start_handle), end = find_event(end_handle);
    if (!start || !end || !start->recorded || !end->recorded) return CUDA_ERROR_INVALID_HANDLE;
    if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
    if (start->completed < start->recorded || end->completed < end->recorded) return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>(end->time_ms - start->time_ms);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return cuEventElapsedTime_v2(milliseconds, start, end);
}
DRIVER_EXPORT CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags) {
    DRIVER_ASKED(cuStreamWaitEvent);
    Lock lock(world());
    auto event = find_event(handle);
    auto stream = find_stream(stream_handle);
    if (!event || !stream) return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture) {  // joins the capture
        if (!event->capture->graph) return CUDA_ERROR_CAPTURED_EVENT;
        if (event->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (stream->capture && stream->capture != event->capture) {
            break_capture(*event->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
            return break_capture(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
        }
        if (!stream->capture) stream->tail.clear();
        stream->capture = event->capture;
        stream->tail.insert(stream->tail.end(), event->nodes.begin(), event->nodes.end());
        return CUDA_SUCCESS;
    }
    if (stream->capture && flags != CU_EVENT_WAIT_EXTERNAL)
        return break_capture(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (stream->capture) return add_captured(*stream, event_node(CU_GRAPH_NODE_TYPE_WAIT_EVENT, handle));
    append(*stream, event_work(CU_GRAPH_NODE_TYPE_WAIT_EVENT, handle));
    return CUDA_SUCCESS;
}
