// Stream capture: a capturing stream's work becomes nodes. graphs.cpp has what is done with them.
#include <utility>

#include "runtime/device/hosted/backend.h"

using namespace smt::runtime::device::hosted;

namespace {

uint64_t next_capture = 1;

CUresult begin_capture(CUstream handle, Graph* graph, std::vector<Node*> tail) {
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = graph;
    stream->began_capture = true;
    stream->capture_id = next_capture++;
    stream->tail = std::move(tail);
    return CUDA_SUCCESS;
}

}  // namespace

DRIVER_EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
    DRIVER_ASKED(cuStreamBeginCapture_v2, "mode=%d", mode);
    CUgraph graph = nullptr;
    if (CUresult status = cuGraphCreate(&graph, 0); status != CUDA_SUCCESS) return status;
    return begin_capture(handle, reinterpret_cast<Graph*>(graph), {});
}
DRIVER_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
                                                   const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                                   size_t count, CUstreamCaptureMode) {
    DRIVER_ASKED(cuStreamBeginCaptureToGraph);
    std::vector<Node*> tail;
    for (size_t i = 0; i < count; ++i) tail.push_back(reinterpret_cast<Node*>(dependencies[i]));
    return begin_capture(handle, reinterpret_cast<Graph*>(graph), std::move(tail));
}
DRIVER_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuStreamEndCapture);
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!stream->capture || !stream->began_capture) return CUDA_ERROR_ILLEGAL_STATE;
    Graph* captured = stream->capture;
    *graph = reinterpret_cast<CUgraph>(captured);
    stream->began_capture = false;
    for (auto& each : all_streams()) {
        if (each->capture != captured) continue;
        each->capture = nullptr;
        each->tail.clear();
    }
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuStreamIsCapturing);
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    *status = stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
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
    *status = stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    if (!stream->capture) return CUDA_SUCCESS;
    if (id) *id = stream->capture_id;
    if (graph) *graph = reinterpret_cast<CUgraph>(stream->capture);
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
