// Graph and stream calls whose parameters hold addresses: attributes, memory operations, user objects.
#include <memory>

#include "runtime/server/callbacks.h"
#include "runtime/server/handlers/tenant_memory.h"
#include "runtime/server/session.h"
#include "runtime/server/streams.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

// Attributes that name an event or a node of the client cannot be taken as they are.
CUresult cuGraphKernelNodeSetAttribute(Call& call, CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue* value) {
    switch (attribute) {
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            break;
    }
    if (!call.driver.cuGraphKernelNodeSetAttribute) return CUDA_ERROR_NOT_SUPPORTED;
    return call.driver.cuGraphKernelNodeSetAttribute(node, attribute, value);
}

CUresult cuStreamBatchMemOp_v2(Call& call, CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams* operations, unsigned int flags) {
    if (!call.driver.cuStreamBatchMemOp_v2) return CUDA_ERROR_NOT_SUPPORTED;
    for (unsigned int i = 0; i < count; ++i) {
        CUdeviceptr address = 0;
        switch (operations[i].operation) {
            case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            case CU_STREAM_MEM_OP_WAIT_VALUE_64:
                address = operations[i].waitValue.address;
                break;
            case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            case CU_STREAM_MEM_OP_WRITE_VALUE_64:
                address = operations[i].writeValue.address;
                break;
            default:
                continue;
        }
        if (!call.session.memory().may_touch(address, sizeof(cuuint64_t))) return CUDA_ERROR_INVALID_VALUE;
    }
    return call.driver.cuStreamBatchMemOp_v2(stream, count, operations, flags);
}

// User objects. The destructor belongs to the application: the driver is given one of ours, which has the
// application's callback thread run it. The driver may call it late, from a thread of its own, when
// the session is gone; the legacy stream, which lives as long as the session, tells.
namespace {

constexpr unsigned int kMostReferences = 1u << 16;  // in one call; they are counted one by one

struct Destructor {
    std::weak_ptr<Stream> session;
    CUDA_HOST_NODE_PARAMS ours;
};

void run_destructor(void* data) {
    std::unique_ptr<Destructor> destructor(static_cast<Destructor*>(data));
    if (destructor->session.lock()) destructor->ours.fn(destructor->ours.userData);
}

void adopt(Call& call, CUuserObject object, unsigned int count) {
    for (; count > 0; --count) call.adopt(HandleKind::kUserObject, reinterpret_cast<uint64_t>(object));
}

void forget(Call& call, CUuserObject object, unsigned int count) {
    for (; count > 0; --count) call.forget(HandleKind::kUserObject, reinterpret_cast<uint64_t>(object));
}

}  // namespace

CUresult cuUserObjectCreate(Call& call, CUuserObject* object, void* data, CUhostFn destroy,
                            unsigned int references, unsigned int flags) {
    if (!object || !destroy || references == 0 || references > kMostReferences)
        return CUDA_ERROR_INVALID_VALUE;
    if (!call.driver.cuUserObjectCreate) return CUDA_ERROR_NOT_SUPPORTED;
    auto destructor = std::make_unique<Destructor>();
    destructor->session = call.session.streams().legacy();
    destructor->ours =
        call.session.callbacks().node(reinterpret_cast<uint64_t>(destroy), reinterpret_cast<uint64_t>(data));
    if (!destructor->ours.fn) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status =
        call.driver.cuUserObjectCreate(object, destructor.get(), run_destructor, references, flags);
    if (status != CUDA_SUCCESS) return status;
    destructor.release();
    adopt(call, *object, references - 1);  // the generated half adopts it once
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(Call& call, CUuserObject object, unsigned int count) {
    if (count > kMostReferences) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = call.driver.cuUserObjectRetain(object, count);
    if (status == CUDA_SUCCESS) adopt(call, object, count);
    return status;
}

CUresult cuUserObjectRelease(Call& call, CUuserObject object, unsigned int count) {
    if (count > kMostReferences) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = call.driver.cuUserObjectRelease(object, count);
    if (status == CUDA_SUCCESS) forget(call, object, count);
    return status;
}

// MOVE hands the caller's references to the graph.
CUresult cuGraphRetainUserObject(Call& call, CUgraph graph, CUuserObject object, unsigned int count,
                                 unsigned int flags) {
    if (count > kMostReferences) return CUDA_ERROR_INVALID_VALUE;
    if (!call.driver.cuGraphRetainUserObject) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuGraphRetainUserObject(graph, object, count, flags);
    if (status == CUDA_SUCCESS && (flags & CU_GRAPH_USER_OBJECT_MOVE)) forget(call, object, count);
    return status;
}

}  // namespace smt::runtime::server::served
