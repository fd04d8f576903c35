// Stream capture: a capturing stream's work becomes nodes. graphs.cpp has what is done with them.
#include <utility>

#include "runtime/device/hosted/backend.h"
#include "runtime/device/hosted/graph_nodes.h"

using namespace smt::runtime::device::hosted;

namespace smt::runtime::device::hosted {

CUresult break_capture(Capture& capture, CUresult mistake) {
    if (!capture.graph) return mistake;
    if (capture.broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    capture.broken = true;
    return mistake;
}

CUresult add_captured(Stream& stream, std::unique_ptr<Node> node) {
    if (stream.capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    node->after = stream.tail;
    stream.tail = {stream.capture->graph->add(std::move(node))};
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::device::hosted

namespace {

CUresult begin_capture(CUstream handle, Capture capture, std::vector<Node*> tail) {
    static uint64_t captures = 0;
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    capture.id = ++captures;
    stream->capture = std::make_shared<Capture>(capture);
    stream->began_capture = true;
    stream->tail = std::move(tail);
    return CUDA_SUCCESS;
}

CUstreamCaptureStatus status_of(const Stream& stream) {
    if (!stream.capture) return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream.capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

}  // namespace

DRIVER_EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
    DRIVER_ASKED(cuStreamBeginCapture_v2, "mode=%d", mode);
    CUgraph graph = nullptr;
    if (CUresult status = cuGraphCreate(&graph, 0); status != CUDA_SUCCESS) return status;
    const CUresult status = begin_capture(handle, {.graph = reinterpret_cast<Graph*>(graph)}, {});
    if (status != CUDA_SUCCESS) cuGraphDestroy(graph);
    return status;
}
DRIVER_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
                                                   const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                                   size_t count, CUstreamCaptureMode) {
    DRIVER_ASKED(cuStreamBeginCaptureToGraph);
    if (!are_of(graph_of(graph), dependencies, count)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Node*> tail;
    for (size_t i = 0; i < count; ++i) tail.push_back(reinterpret_cast<Node*>(dependencies[i]));
    return begin_capture(handle, {.graph = reinterpret_cast<Graph*>(graph), .own_graph = false},
                         std::move(tail));
}
DRIVER_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuStreamEndCapture);
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!stream->capture || !stream->began_capture) return CUDA_ERROR_ILLEGAL_STATE;
    const std::shared_ptr<Capture> captured = stream->capture;
    *graph = reinterpret_cast<CUgraph>(captured->graph);
    stream->began_capture = false;
    for (auto& each : all_streams()) {
        if (each->capture != captured) continue;
        each->capture.reset();
        each->tail.clear();
    }
    captured->graph = nullptr;
    if (!captured->broken) return CUDA_SUCCESS;
    lock.unlock();
    if (captured->own_graph) cuGraphDestroy(*graph);
    *graph = nullptr;
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}
DRIVER_EXPORT CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuStreamIsCapturing);
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    *status = status_of(*stream);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status,
                                                 cuuint64_t* id, CUgraph* graph,
                                                 const CUgraphNode** dependencies,
                                                 const CUgraphEdgeData** edges, size_t* count) {
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuStreamGetCaptureInfo_v3);
    static const CUgraphEdgeData* no_edges = new CUgraphEdgeData[4096]();
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    *status = status_of(*stream);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    if (id) *id = stream->capture->id;
    if (graph) *graph = reinterpret_cast<CUgraph>(stream->capture->graph);
    if (dependencies) *dependencies = reinterpret_cast<const CUgraphNode*>(stream->tail.data());
    if (edges) *edges = no_edges;
    if (count) *count = stream->tail.size();
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status,
                                                 cuuint64_t* id, CUgraph* graph,
                                                 const CUgraphNode** dependencies, size_t* count) {
    return cuStreamGetCaptureInfo_v3(handle, status, id, graph, dependencies, nullptr, count);
}
DRIVER_EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* dependencies,
                                                            const CUgraphEdgeData*, size_t count,
                                                            unsigned flags) {
    DRIVER_ASKED(cuStreamUpdateCaptureDependencies_v2);
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (stream->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!are_of(stream->capture->graph, dependencies, count)) return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->tail.clear();
    for (size_t i = 0; i < count; ++i) stream->tail.push_back(reinterpret_cast<Node*>(dependencies[i]));
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuThreadExchangeStreamCaptureMode);
    thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::swap(current, *mode);
    return CUDA_SUCCESS;
}
