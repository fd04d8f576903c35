// Stream attributes: a program sees its own priority. The driver's also depends on the tenant's. Memory
// operations: a stream that waits for a value has no work for a policy (Streams::enqueue_wait()), nor has a
// graph (GraphWaits::capture()).
#include "runtime/server/lane.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/session.h"
#include "runtime/server/streams.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

namespace {

template <typename Enqueue>
CUresult wait(Call& call, CUstream stream, const CUstreamBatchMemOpParams* operations, unsigned count,
              unsigned flags, const Enqueue& enqueue) {
    const StreamPointer held = call.lane.held(stream);
    if (!held) return enqueue();
    Streams& streams = call.session.streams();
    if (streams.capturing(stream))
        return call.session.graph_waits().capture(stream, operations, count, flags, enqueue);
    return streams.enqueue_wait(*held, enqueue);
}

CUstreamBatchMemOpParams wait_of(CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value,
                                 unsigned flags) {
    CUstreamBatchMemOpParams operation{};
    operation.waitValue.operation = type;
    operation.waitValue.address = address;
    operation.waitValue.value64 = value;  // which shares its place with the value of 32 bits
    operation.waitValue.flags = flags;
    return operation;
}

}  // namespace

CUresult cuStreamWaitValue32_v2(Call& call, CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned int flags) {
    if (!call.driver.cuStreamWaitValue32_v2) return CUDA_ERROR_NOT_SUPPORTED;
    const auto operation = wait_of(CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
    return wait(call, stream, &operation, 1, 0,
                [&] { return call.driver.cuStreamWaitValue32_v2(stream, address, value, flags); });
}

CUresult cuStreamWaitValue64_v2(Call& call, CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned int flags) {
    if (!call.driver.cuStreamWaitValue64_v2) return CUDA_ERROR_NOT_SUPPORTED;
    const auto operation = wait_of(CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
    return wait(call, stream, &operation, 1, 0,
                [&] { return call.driver.cuStreamWaitValue64_v2(stream, address, value, flags); });
}

CUresult cuStreamGetAttribute(Call& call, CUstream stream, CUstreamAttrID attribute,
                              CUstreamAttrValue* value) {
    if (!call.driver.cuStreamGetAttribute) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuStreamGetAttribute(stream, attribute, value);
    if (status == CUDA_SUCCESS && value && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = call.session.streams().priority_of(stream);
    return status;
}

CUresult cuStreamSetAttribute(Call& call, CUstream stream, CUstreamAttrID attribute,
                              const CUstreamAttrValue* value) {
    if (!call.driver.cuStreamSetAttribute) return CUDA_ERROR_NOT_SUPPORTED;
    if (value && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        return call.session.streams().set_priority(stream, value->priority);
    return call.driver.cuStreamSetAttribute(stream, attribute, value);
}

CUresult cuStreamBatchMemOp_v2(Call& call, CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams* operations, unsigned int flags) {
    if (!call.driver.cuStreamBatchMemOp_v2) return CUDA_ERROR_NOT_SUPPORTED;
    bool waits = false;
    for (unsigned int i = 0; i < count; ++i) {
        CUdeviceptr address = 0;
        switch (operations[i].operation) {
            case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            case CU_STREAM_MEM_OP_WAIT_VALUE_64:
                waits = true;
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
    const auto enqueue = [&] { return call.driver.cuStreamBatchMemOp_v2(stream, count, operations, flags); };
    return waits ? wait(call, stream, operations, count, flags, enqueue) : enqueue();
}

}  // namespace smt::runtime::server::served
