// Stream capture: begin, end and queries. See capture.h.
#include "interpose/driver/capture.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "driver.gen.h"
#include "interpose/driver/lock.h"
#include "interpose/driver/objects.h"
#include "interpose/driver/order.h"
#include "interpose/driver/remapped_pages.h"
#include "interpose/process/session.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/remote_call.h"
#include "runtime/protocol/try.h"

namespace smt::interpose {

using namespace protocol;

constinit std::atomic<uint32_t> captures_under_way{0};

namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local CUstreamCaptureMode capture_mode =
    CU_STREAM_CAPTURE_MODE_GLOBAL;

// The arrays that cuStreamGetCaptureInfo returns pointers to: the thread's own, valid until its next query.
struct Dependencies {
    CUgraphNode* nodes;
    CUgraphEdgeData* edges;
    uint32_t capacity;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Dependencies dependencies = {};

bool make_room(uint32_t count) {
    if (count <= dependencies.capacity) return true;
    auto* nodes = static_cast<CUgraphNode*>(std::realloc(dependencies.nodes, count * sizeof(CUgraphNode)));
    if (nodes) dependencies.nodes = nodes;
    auto* edges =
        static_cast<CUgraphEdgeData*>(std::realloc(dependencies.edges, count * sizeof(CUgraphEdgeData)));
    if (edges) dependencies.edges = edges;
    if (!nodes || !edges) return false;
    dependencies.capacity = count;
    return true;
}

// A capture under way.
struct Capture {
    Session* session;
    CUstream stream;   // on which it began
    const Lane* lane;  // that of a thread's default stream
    uint64_t number;
    uint64_t thread;
    CUstreamCaptureMode mode;
    bool blocking;  // the stream's work is ordered with the legacy stream's
    bool broken;    // by a call that was refused
};

// At most kMostCaptures are known; what others forbid is not refused.
constexpr uint32_t kMostCaptures = 256;
constinit pthread_mutex_t captures_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Capture captures[kMostCaptures] = {};  // captures_under_way of them

uint64_t this_thread() {
    static constinit std::atomic<uint64_t> last{0};
    [[gnu::tls_model("initial-exec")]] constinit static thread_local uint64_t number = 0;
    if (number == 0) number = last.fetch_add(1) + 1;
    return number;
}

bool is_of(const Capture& capture, CUstream stream) {
    return capture.session == thread_session && capture.stream == stream &&
           (stream != CU_STREAM_PER_THREAD || capture.thread == this_thread());
}

// With the thread of whose default stream it was.
bool is_over(const Capture& capture) {
    return capture.lane && capture.lane->capture_number.load(std::memory_order_acquire) != capture.number;
}

// Called with captures_lock held.
template <typename Condition>
void drop_captures(Condition condition) {
    uint32_t kept = 0;
    const uint32_t count = captures_under_way.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < count; ++i)
        if (!condition(captures[i])) captures[kept++] = captures[i];
    captures_under_way.store(kept, std::memory_order_relaxed);
}

bool is_blocking(CUstream stream) {
    const Stream* object = find_stream(stream);
    return !object || (object->flags & CU_STREAM_NON_BLOCKING) == 0;
}

// The capture of a thread's default stream ends with its lane.
void capture_begun(CUstream stream, CUstreamCaptureMode mode) {
    Lanes& lanes = session_lanes.here();
    lanes.captures.fetch_add(1);
    const Lock lock(captures_lock);
    static constinit uint64_t number = 0;
    Lane* const lane = stream == CU_STREAM_PER_THREAD ? thread_lane : nullptr;
    if (lane) lane->capture = lanes.captures_era.load() + 1;
    if (lane) lane->capture_number.store(++number, std::memory_order_relaxed);
    drop_captures([&](const Capture& before) { return is_of(before, stream) || is_over(before); });
    const uint32_t count = captures_under_way.load(std::memory_order_relaxed);
    if (count == kMostCaptures) return;
    captures[count] = {.session = &this_session(),
                       .stream = stream,
                       .lane = lane,
                       .number = number,
                       .thread = this_thread(),
                       .mode = mode,
                       .blocking = is_blocking(stream),
                       .broken = false};
    captures_under_way.store(count + 1, std::memory_order_relaxed);
}

void capture_ended(CUstream stream) {
    note_capture_end(session_lanes.here());
    if (stream == CU_STREAM_PER_THREAD && thread_lane) thread_lane->capture = 0;
    const Lock lock(captures_lock);
    drop_captures([&](const Capture& capture) { return is_of(capture, stream); });
}

bool find_capture(CUstream stream, Capture& found) {
    const Lock lock(captures_lock);
    const uint32_t count = captures_under_way.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < count; ++i)
        if (is_of(captures[i], stream)) return found = captures[i], true;
    return false;
}

// A query breaks the capture of its stream.
void break_in_server(CUstream stream) {
    uint32_t reference;
    if (!stream_ref(stream, reference) || order_after(stream) != CUDA_SUCCESS) return;
    RemoteCall call(Op::kStreamQuery, sizeof(StreamRef));
    if (!call.open()) return;
    call.in(StreamRef{reference, 0});
    call.wait();
}

// Breaks the captures for which the condition holds. Returns whether there are any. A capture of another
// thread's default stream is broken in the server when it is to end.
template <typename Condition>
bool break_captures(Condition condition) {
    bool any = false;
    for (uint32_t i = 0;; ++i) {
        Capture capture;
        {
            const Lock lock(captures_lock);
            if (i >= captures_under_way.load(std::memory_order_relaxed)) return any;
            Capture& each = captures[i];
            if (is_over(each) || !condition(each)) continue;
            any = true;
            capture = each;
            each.broken = true;
        }
        if (capture.broken || (capture.lane && capture.thread != this_thread())) continue;
        const InSession in(capture.session);
        break_in_server(capture.stream);
    }
}

bool forbids_unsafe_calls(const Capture& capture) {
    if (capture.thread == this_thread()) return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

bool is_blocking_here(const Capture& capture) {
    return capture.blocking && capture.session == thread_session;
}

bool legacy_stream_unusable() {
    const Lock lock(captures_lock);
    const uint32_t count = captures_under_way.load(std::memory_order_relaxed);
    return std::any_of(captures, captures + count,
                       [](const Capture& each) { return is_blocking_here(each) && !is_over(each); });
}

// An application's capture is over even if ending it failed, except where the driver reports that this stream
// has none to end.
bool ends_capture(CUresult status) {
    return status != CUDA_ERROR_ILLEGAL_STATE && status != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED &&
           status != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD && status != CUDA_ERROR_INVALID_HANDLE;
}

CUresult check_capturable(CUstream stream, CUstreamCaptureMode mode, uint32_t& reference) {
    if (static_cast<unsigned int>(mode) > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_ref(stream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    return stream == CU_STREAM_LEGACY ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

// Sends one kStreamCaptureInfo. With `wanted`, the dependencies are left in the thread's buffer.
CUresult ask_capture(CUstream stream, bool wanted, CaptureInfo& info) {
    info = {};
    uint32_t reference;
    if (!stream_ref(stream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    if (!any_capture_active()) return CUDA_SUCCESS;
    if (stream == CU_STREAM_LEGACY && legacy_stream_unusable()) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    SMT_TRY(order_after(stream));
    RemoteCall call(Op::kStreamCaptureInfo, sizeof(StreamRef));
    if (!call.open()) return call.status();
    call.in(StreamRef{reference, 0});
    SMT_TRY(call.wait());
    call.out(&info);
    if (!wanted || !info.dependency_count) return CUDA_SUCCESS;
    uint64_t count = info.dependency_count;
    const char* nodes = call.reply().take(count * sizeof(CUgraphNode));
    const char* edges = call.reply().take(count * sizeof(CUgraphEdgeData));
    if (!nodes || !edges) return CUDA_ERROR_UNKNOWN;
    if (!make_room(info.dependency_count)) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memcpy(dependencies.nodes, nodes, count * sizeof(CUgraphNode));
    std::memcpy(dependencies.edges, edges, count * sizeof(CUgraphEdgeData));
    return CUDA_SUCCESS;
}

bool plain_edges(uint32_t count) {
    const CUgraphEdgeData plain = {};
    for (uint32_t i = 0; i < count; ++i)
        if (std::memcmp(&dependencies.edges[i], &plain, sizeof(plain)) != 0) return false;
    return true;
}

// What a capture of this stream has returned at its end, a later call does not return again.
void forget_capture_error() {
    if (!thread_lane) return;
    std::atomic<int32_t>& late = thread_lane->header->async_error;
    int32_t error = late.load(std::memory_order_acquire);
    if (error >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && error <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        late.compare_exchange_strong(error, 0);
}

CUresult end_capture(uint32_t reference, CUgraph* graph) {
    RemoteCall call(Op::kStreamEndCapture, sizeof(StreamRef));
    if (!call.open()) return call.status();
    call.in(StreamRef{reference, 0});
    SMT_TRY(call.wait());
    call.out(graph);
    return CUDA_SUCCESS;
}

}  // namespace

bool any_capture_active() { return session_lanes.here().captures.load(std::memory_order_relaxed) != 0; }

CUresult capture_status(CUstream stream, CUstreamCaptureStatus* status) {
    CaptureInfo info;
    CUresult result = ask_capture(stream, false, info);
    *status = static_cast<CUstreamCaptureStatus>(info.status);
    return result;
}

CUresult check_legacy_use(CUstream stream) {
    return stream == CU_STREAM_LEGACY && break_captures(is_blocking_here) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                                                                          : CUDA_SUCCESS;
}

CUresult check_unsafe_call() {
    if (capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    return break_captures(forbids_unsafe_calls) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult check_wait_for_all() {
    if (captures_under_way.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
    return break_captures([](const Capture& capture) { return capture.session == thread_session; })
               ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
               : CUDA_SUCCESS;
}

void forget_capture(CUstream stream) {
    Capture capture;
    if (captures_under_way.load(std::memory_order_relaxed) != 0 && find_capture(stream, capture))
        capture_ended(stream);
}

void forget_captures() {
    Lanes& lanes = session_lanes.here();
    lanes.captures_era.fetch_add(1);
    lanes.captures.store(0);
    const Lock lock(captures_lock);
    drop_captures([](const Capture& capture) { return capture.session == thread_session; });
}

namespace driver {

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    if (!mode || static_cast<unsigned int>(*mode) > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
    uint32_t reference;
    SMT_TRY(check_capturable(hStream, mode, reference));
    driver::reclaim_remapped();  // before the capture begins
    SMT_TRY(order_after(hStream));
    RemoteCall call(Op::kStreamBeginCapture, sizeof(StreamCapture));
    if (!call.open()) return call.status();
    call.in(StreamCapture{reference, static_cast<uint32_t>(mode), 0});
    CUresult status = call.wait();
    note_use(hStream);
    if (status == CUDA_SUCCESS) capture_begun(hStream, mode);
    return status;
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode* nodes,
                                     const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
    uint32_t reference;
    if (!hGraph || (numDependencies && !nodes)) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(check_capturable(hStream, mode, reference));
    driver::reclaim_remapped();  // before the capture begins
    SMT_TRY(order_after(hStream));
    uint64_t bound =
        sizeof(StreamCapture) + 16 + numDependencies * (sizeof(CUgraphNode) + sizeof(CUgraphEdgeData));
    RemoteCall call(Op::kBeginCaptureToGraph, bound);
    if (!call.open()) return call.status();
    call.in(StreamCapture{reference, static_cast<uint32_t>(mode), reinterpret_cast<uint64_t>(hGraph)});
    call.in(uint64_t{numDependencies});
    if (numDependencies) call.in_bytes(nodes, numDependencies * sizeof(CUgraphNode));
    for (size_t i = 0; i < numDependencies; ++i)
        call.in(dependencyData ? dependencyData[i] : CUgraphEdgeData{});
    CUresult status = call.wait();
    note_use(hStream);
    if (status == CUDA_SUCCESS) capture_begun(hStream, mode);
    return status;
}

// An earlier error of this thread is returned instead of the graph, which may lack what failed.
CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
    uint32_t reference;
    if (!phGraph) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_ref(hStream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    *phGraph = nullptr;
    Capture capture{};
    if (find_capture(hStream, capture) && capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        capture.thread != this_thread())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (capture.broken) break_in_server(hStream);
    SMT_TRY(order_after(hStream));
    CUgraph graph = nullptr;
    CUresult status = end_capture(reference, &graph);
    note_use(hStream);
    if (ends_capture(status)) capture_ended(hStream);
    if (status != CUDA_SUCCESS) return forget_capture_error(), status;
    SMT_TRY(late_error());
    *phGraph = graph;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
    return captureStatus ? capture_status(hStream, captureStatus) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out, const CUgraphEdgeData** edgeData_out,
                                   size_t* numDependencies_out) {
    if (!captureStatus_out) return CUDA_ERROR_INVALID_VALUE;
    bool wanted = dependencies_out || edgeData_out;
    CaptureInfo info;
    SMT_TRY(ask_capture(hStream, wanted, info));
    *captureStatus_out = static_cast<CUstreamCaptureStatus>(info.status);
    if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (dependencies_out && !edgeData_out && !plain_edges(info.dependency_count))
        return CUDA_ERROR_LOSSY_QUERY;
    if (id_out) *id_out = info.id;
    if (graph_out) *graph_out = reinterpret_cast<CUgraph>(info.graph);
    if (dependencies_out) *dependencies_out = dependencies.nodes;
    if (edgeData_out) *edgeData_out = dependencies.edges;
    if (numDependencies_out) *numDependencies_out = info.dependency_count;
    return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode* nodes,
                                              const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                              unsigned int flags) {
    uint32_t reference;
    if (numDependencies && !nodes) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_ref(hStream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    if (!any_capture_active()) return CUDA_ERROR_ILLEGAL_STATE;
    SMT_TRY(order_after(hStream));
    uint64_t bound =
        sizeof(StreamUpdateCapture) + numDependencies * (sizeof(CUgraphNode) + sizeof(CUgraphEdgeData));
    RemoteCall call(Op::kStreamUpdateCapture, bound);
    if (!call.open()) return call.status();
    call.in(StreamUpdateCapture{reference, flags, static_cast<uint32_t>(numDependencies),
                                dependencyData ? 1u : 0u});
    if (numDependencies) call.in_bytes(nodes, numDependencies * sizeof(CUgraphNode));
    if (dependencyData) call.in_bytes(dependencyData, numDependencies * sizeof(CUgraphEdgeData));
    CUresult status = call.wait();
    note_use(hStream);
    return status;
}

}  // namespace driver

}  // namespace smt::interpose
