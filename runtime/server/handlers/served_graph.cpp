// Graph and stream calls whose parameters hold addresses: attributes, memory operations, user objects.
#include "runtime/server/callbacks.h"
#include "runtime/server/handlers/tenant_memory.h"
#include "runtime/server/session.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

// Attributes that name an event or a node of the client cannot be taken as they are.
CUresult cuGraphKernelNodeSetAttribute(Call& call, CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue* value) {
    switch (attribute) {
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: return CUDA_ERROR_NOT_SUPPORTED;
        default: break;
    }
    if (!call.driver.cuGraphKernelNodeSetAttribute) return CUDA_ERROR_NOT_SUPPORTED;
    return call.driver.cuGraphKernelNodeSetAttribute(node, attribute, value);
}

CUresult cuStreamBatchMemOp_v2(Call& call, CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                               unsigned int flags) {
    if (!call.driver.cuStreamBatchMemOp_v2) return CUDA_ERROR_NOT_SUPPORTED;
    for (unsigned int i = 0; i < count; ++i) {
        CUdeviceptr address = 0;
        switch (operations[i].operation) {
            case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            case CU_STREAM_MEM_OP_WAIT_VALUE_64: address = operations[i].waitValue.address; break;
            case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            case CU_STREAM_MEM_OP_WRITE_VALUE_64: address = operations[i].writeValue.address; break;
            case CU_STREAM_MEM_OP_ATOMIC_REDUCTION: address = operations[i].atomicReduction.address; break;
            default: continue;
        }
        if (!call.session.memory().may_touch(address, sizeof(cuuint64_t))) return CUDA_ERROR_INVALID_VALUE;
    }
    return call.driver.cuStreamBatchMemOp_v2(stream, count, operations, flags);
}

// The destructor runs in the application: the driver is given a host function that hands it over.
CUresult cuUserObjectCreate(Call& call, CUuserObject* object, void* data, CUhostFn destroy, unsigned int references,
                            unsigned int flags) {
    if (!destroy) return CUDA_ERROR_INVALID_VALUE;
    if (!call.driver.cuUserObjectCreate) return CUDA_ERROR_NOT_SUPPORTED;
    const CUDA_HOST_NODE_PARAMS ours = call.session.callbacks().user_object(reinterpret_cast<uint64_t>(destroy),
                                                                           reinterpret_cast<uint64_t>(data));
    if (!ours.fn) return CUDA_ERROR_OUT_OF_MEMORY;
    return call.driver.cuUserObjectCreate(object, ours.userData, ours.fn, references, flags);
}

}  // namespace smt::runtime::server::served
