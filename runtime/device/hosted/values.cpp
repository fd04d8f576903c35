// Values that streams and graphs write, and wait for.
#include <atomic>
#include <type_traits>
#include <utility>

#include "runtime/device/hosted/backend.h"
#include "runtime/device/hosted/graph_nodes.h"

namespace smt::runtime::device::hosted {

namespace {

template <typename Word>
bool satisfied(Word now, Word value, unsigned flags) {
    switch (flags & 3) {
        case CU_STREAM_WAIT_VALUE_EQ:
            return now == value;
        case CU_STREAM_WAIT_VALUE_AND:
            return (now & value) != 0;
        case CU_STREAM_WAIT_VALUE_NOR:
            return static_cast<Word>(~(now | value)) != 0;
        default:
            return static_cast<std::make_signed_t<Word>>(now - value) >= 0;
    }
}

template <typename Word>
std::unique_ptr<Node> write_node(CUdeviceptr address, Word value) {
    auto node = std::make_unique<Node>();
    node->type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    node->work = [address, value] {
        if (!touchable(address, sizeof value)) return;
        reinterpret_cast<std::atomic<Word>*>(address)->store(value, std::memory_order_release);
    };
    return node;
}

template <typename Word>
std::unique_ptr<Node> wait_node(CUdeviceptr address, Word value, unsigned flags) {
    auto node = std::make_unique<Node>();
    node->type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    node->polled = true;
    node->ready = [=] {
        if (!known(address, sizeof value)) return true;
        return satisfied(reinterpret_cast<std::atomic<Word>*>(address)->load(std::memory_order_acquire),
                         value, flags);
    };
    return node;
}

size_t bytes_of(CUstreamBatchMemOpType operation) {
    return operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ? 4
                                                                                                       : 8;
}

// Values are written and waited for at addresses that are aligned to their size; CUDA refuses others.
CUresult check(const CUstreamBatchMemOpParams& operation) {
    switch (operation.operation) {
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            return operation.waitValue.address % bytes_of(operation.operation) ? CUDA_ERROR_INVALID_VALUE
                                                                               : CUDA_SUCCESS;
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

// All operations of a batch that is captured are one node.
CUresult enqueue_batch(CUstream handle, std::vector<CUstreamBatchMemOpParams> batch) {
    for (const CUstreamBatchMemOpParams& each : batch) {
        if (CUresult status = check(each); status != CUDA_SUCCESS) return status;
    }
    Lock lock(world());
    auto stream = find_stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) {
        auto node = std::make_unique<Node>();
        node->type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
        node->batch = std::move(batch);
        return add_captured(*stream, std::move(node));
    }
    for (const CUstreamBatchMemOpParams& each : batch) append(*stream, value_work(each));
    return CUDA_SUCCESS;
}

CUresult enqueue_one(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value,
                     unsigned flags) {
    CUstreamBatchMemOpParams operation{};
    operation.waitValue.operation = type;
    operation.waitValue.address = address;
    operation.waitValue.value64 = value;  // which shares its place with the value of 32 bits
    operation.waitValue.flags = flags;
    return enqueue_batch(stream, {operation});
}

}  // namespace

std::unique_ptr<Node> value_work(const CUstreamBatchMemOpParams& operation) {
    const CUdeviceptr address = operation.waitValue.address;  // a write has the same layout
    const uint64_t value = operation.waitValue.value64;
    const unsigned flags = operation.waitValue.flags;
    switch (operation.operation) {
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            return write_node(address, static_cast<uint32_t>(value));
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            return write_node(address, value);
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            return wait_node(address, static_cast<uint32_t>(value), flags);
        default:
            return wait_node(address, value, flags);
    }
}

}  // namespace smt::runtime::device::hosted

using namespace smt::runtime::device::hosted;

DRIVER_EXPORT CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                               unsigned flags) {
    DRIVER_ASKED(cuStreamWriteValue64_v2, "%llx=%llu", address, static_cast<unsigned long long>(value));
    return enqueue_one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}
DRIVER_EXPORT CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                               unsigned flags) {
    DRIVER_ASKED(cuStreamWriteValue32_v2);
    return enqueue_one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}
DRIVER_EXPORT CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                              unsigned flags) {
    DRIVER_ASKED(cuStreamWaitValue64_v2, "%llx>=%llu", address, static_cast<unsigned long long>(value));
    return enqueue_one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}
DRIVER_EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                              unsigned flags) {
    DRIVER_ASKED(cuStreamWaitValue32_v2);
    return enqueue_one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}
DRIVER_EXPORT CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count,
                                             CUstreamBatchMemOpParams* operations, unsigned) {
    DRIVER_ASKED(cuStreamBatchMemOp_v2, "count=%u", count);
    if (count && !operations) return CUDA_ERROR_INVALID_VALUE;
    return enqueue_batch(stream, {operations, operations + count});
}
DRIVER_EXPORT CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode handle,
                                                      CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuGraphBatchMemOpNodeGetParams);
    std::vector<CUstreamBatchMemOpParams>& batch = node_of(handle)->batch;
    if (batch.empty()) return CUDA_ERROR_INVALID_VALUE;
    *parameters = {};
    parameters->count = static_cast<unsigned>(batch.size());
    parameters->paramArray = batch.data();
    return CUDA_SUCCESS;
}
