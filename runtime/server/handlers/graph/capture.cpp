// Stream capture. The driver's captures all begin as RELAXED, so that one tenant's capture does not make
// another tenant's calls fail. The client implements the mode that the application requested. The session
// counts its active captures: if there are none, the driver is not asked whether a stream captures.
#include <vector>

#include "runtime/protocol/try.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/lane.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

namespace {

// Dependency nodes from a client, with or without edge data. They are added to the call's uses.
struct Dependencies {
    const CUgraphNode* nodes = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    uint64_t count = 0;
};

bool read(Call& call, uint64_t count, bool with_edges, Dependencies* dependencies) {
    dependencies->count = count;
    if (count > protocol::kNull / sizeof(uint64_t)) return false;
    dependencies->nodes = reinterpret_cast<const CUgraphNode*>(call.in.take(count * sizeof(CUgraphNode)));
    if (with_edges)
        dependencies->edges =
            reinterpret_cast<const CUgraphEdgeData*>(call.in.take(count * sizeof(CUgraphEdgeData)));
    if (!call.in.good()) return false;
    call.uses.add(HandleKind::kGraphNode, dependencies->nodes, count);
    return true;
}

CUresult capturable(Call& call, uint32_t reference, StreamPointer* stream) {
    if (reference == protocol::kLegacyStream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    Streams& streams = call.session.streams();
    SMT_TRY(call.find_stream(reference, stream));
    Stream& found = **stream;
    call.uses.hold_captures();
    if (streams.capturing(found.handle)) return CUDA_SUCCESS;
    CUresult status = found.guard();
    // Marked before the capture begins: a later mark would become a node of the graph.
    if (dispatch::ManagedStream* managed = found.managed.load(std::memory_order_acquire))
        managed->mark_what_is_there();
    return status == CUDA_SUCCESS ? streams.wait_function(found) : status;
}

bool has_capture(Call& call, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return call.driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUgraph captured_graph(Call& call, CUstream stream) {
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* nodes = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    size_t count = 0;
    call.driver.cuStreamGetCaptureInfo_v3(stream, &capture, &id, &graph, &nodes, &edges, &count);
    return graph;
}

}  // namespace

CUresult handle_begin_capture(Call& call) {
    protocol::StreamCapture request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    StreamPointer target;
    SMT_TRY(capturable(call, request.stream, &target));
    const CUstream stream = target->handle;
    std::lock_guard lock(target->host_function_mutex);
    // Counted before the call: another lane must not take the stream for one that does not capture.
    call.session.streams().capture_begun();
    CUresult status = call.driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (status) {
        call.session.streams().capture_ended();
        return status;
    }
    call.session.handles().capture_begun(stream, captured_graph(call, stream), true);
    return CUDA_SUCCESS;
}

CUresult handle_begin_capture_to_graph(Call& call) {
    auto request = call.in.scalar<protocol::StreamCapture>();
    auto count = call.in.scalar<uint64_t>();
    Dependencies dependencies;
    if (!read(call, count, true, &dependencies)) return CUDA_ERROR_INVALID_VALUE;
    auto graph = reinterpret_cast<CUgraph>(request.graph);
    call.uses.add(HandleKind::kGraph, graph);
    SMT_TRY(call.uses.begin());
    StreamPointer target;
    SMT_TRY(capturable(call, request.stream, &target));
    const CUstream stream = target->handle;
    std::lock_guard lock(target->host_function_mutex);
    call.session.streams().capture_begun();
    CUresult status =
        call.driver.cuStreamBeginCaptureToGraph(stream, graph, dependencies.nodes, dependencies.edges,
                                                dependencies.count, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (status)
        call.session.streams().capture_ended();
    else
        call.session.handles().capture_begun(stream, graph, false);
    return status;
}

// A capture that failed is ended as well: the state of the stream decides.
CUresult handle_end_capture(Call& call) {
    protocol::StreamRef request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    StreamPointer target;
    SMT_TRY(capturable(call, request.stream, &target));
    const CUstream stream = target->handle;
    bool captured = has_capture(call, stream);
    CUgraph graph = nullptr;
    CUresult status = call.driver.cuStreamEndCapture(stream, &graph);
    if (!captured || has_capture(call, stream)) return status ? status : CUDA_ERROR_ILLEGAL_STATE;
    call.session.streams().capture_ended();
    const uint64_t id = call.session.handles().capture_ended(stream, graph);
    if (status) return status;
    call.out.scalar(id);
    return CUDA_SUCCESS;
}

// Registers the graph and the returned nodes, so the client may pass them in later calls.
CUresult handle_capture_info(Call& call) {
    protocol::StreamRef request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = nullptr;
    SMT_TRY(call.plain_stream(request.stream, &stream));
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* nodes = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    size_t count = 0;
    CUresult status =
        call.driver.cuStreamGetCaptureInfo_v3(stream, &capture, &id, &graph, &nodes, &edges, &count);
    if (status) return status;
    protocol::CaptureInfo info{static_cast<uint32_t>(capture), 0, 0, 0};
    if (capture != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        call.out.scalar(info);
        return CUDA_SUCCESS;
    }
    info.dependency_count = static_cast<uint32_t>(count);
    info.id = id;
    info.graph = reinterpret_cast<uint64_t>(graph);
    SMT_TRY(call.known(HandleKind::kGraph, info.graph));
    std::vector<CUgraphNode> ids(nodes, nodes + count);
    for (CUgraphNode& node : ids) call.lend(HandleKind::kGraphNode, node, HandleKind::kGraph, graph);
    std::vector<CUgraphEdgeData> none(edges ? 0 : count);
    call.out.scalar(info);
    call.out.bytes(ids.data(), count * sizeof(CUgraphNode));
    call.out.bytes(edges ? edges : none.data(), count * sizeof(CUgraphEdgeData));
    return CUDA_SUCCESS;
}

CUresult handle_update_capture(Call& call) {
    auto request = call.in.scalar<protocol::StreamUpdateCapture>();
    Dependencies dependencies;
    if (!read(call, request.dependency_count, request.has_edge_data != 0, &dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(call.uses.begin());
    StreamPointer target;
    SMT_TRY(capturable(call, request.stream, &target));
    const CUstream stream = target->handle;
    if (request.flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES) call.session.memory().graphs().reorder(stream);
    return call.driver.cuStreamUpdateCaptureDependencies_v2(
        stream, const_cast<CUgraphNode*>(dependencies.nodes), dependencies.edges, dependencies.count,
        request.flags);
}

}  // namespace smt::runtime::server::handlers
