// Whole graphs: instantiation with parameters, and launch.
#include "interpose/driver/graph.h"

#include "driver.gen.h"
#include "interpose/driver/order.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

using namespace protocol;

CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream) {
    uint32_t reference;
    if (!hGraph) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_ref(hStream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    SMT_TRY(order_after(hStream));
    RemoteCall call(Op::kGraphLaunch, sizeof(GraphLaunch));
    if (!call.open()) return call.status();
    call.in(GraphLaunch{reinterpret_cast<uint64_t>(hGraph), reference, 0});
    CUresult status = call.post();
    note_use(hStream);
    return status;
}

// `stream` is the default stream of the called entry point.
CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams, CUstream stream) {
    if (!phGraphExec || !instantiateParams) return CUDA_ERROR_INVALID_VALUE;
    constexpr cuuint64_t kUpload = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    cuuint64_t flags = instantiateParams->flags;
    instantiateParams->hErrNode_out = nullptr;
    instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    SMT_TRY(driver::cuGraphInstantiateWithFlags(phGraphExec, hGraph, flags & ~kUpload));
    instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    if (!(flags & kUpload)) return CUDA_SUCCESS;
    return driver::cuGraphUpload(
        *phGraphExec, instantiateParams->hUploadStream ? instantiateParams->hUploadStream : stream);
}

}  // namespace smt::interpose::driver
