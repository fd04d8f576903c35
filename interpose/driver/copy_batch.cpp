// Batches of copies, carried out one after another. The driver may run a batch in any order, so this order is
// permitted. The driver's guarantee about the source (srcAccessOrder) is kept.
#include "driver.gen.h"
#include "interpose/driver/copy.h"

namespace smt::interpose::driver {
namespace {

// A source that may be gone when the call returns must be read by then.
Manner manner_of(CUmemcpySrcAccessOrder order) {
    return order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ? Manner::kSynchronous : Manner::kAsynchronous;
}

bool valid(CUmemcpySrcAccessOrder order) {
    return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

CUresult copy_each(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                   CUmemcpyAttributes* attributes, size_t* first, size_t attribute_count, size_t& failed,
                   CUstream stream) {
    failed = SIZE_MAX;
    if (!to || !from || !bytes || count == 0 || !attributes || !first || attribute_count == 0 ||
        attribute_count > count || first[0] != 0 || stream == CU_STREAM_LEGACY)
        return CUDA_ERROR_INVALID_VALUE;
    size_t used = 0;
    for (size_t i = 0; i < count; ++i) {
        while (used + 1 < attribute_count && first[used + 1] <= i) ++used;
        failed = i;
        CUmemcpySrcAccessOrder order = attributes[used].srcAccessOrder;
        if (!valid(order)) return CUDA_ERROR_INVALID_VALUE;
        CUresult status =
            transfer(linear(unified_end(to[i]), unified_end(from[i]), bytes[i]), stream, manner_of(order));
        if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
}

// Bytes of an array element; 0 for a format of blocks or planes, which has none.
uint64_t element_bytes(const CUDA_ARRAY3D_DESCRIPTOR& array) {
    switch (array.Format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
            return array.NumChannels;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            return 2 * array.NumChannels;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
            return 4 * array.NumChannels;
        default:
            return 0;
    }
}

CUresult element_of(const CUmemcpy3DOperand& operand, uint64_t& bytes) {
    if (operand.type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return CUDA_SUCCESS;
    CUDA_ARRAY3D_DESCRIPTOR description{};
    CUresult status = driver::cuArray3DGetDescriptor_v2(&description, operand.op.array.array);
    if (status != CUDA_SUCCESS) return status;
    bytes = element_bytes(description);
    return bytes ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

// Lengths of an operand count elements, those of a Transfer bytes.
CopyEnd end_of(const CUmemcpy3DOperand& operand, uint64_t element) {
    if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        CopyEnd end = array_end(operand.op.array.array, operand.op.array.offset.x * element);
        end.y = operand.op.array.offset.y;
        end.z = operand.op.array.offset.z;
        return end;
    }
    CopyEnd end = unified_end(operand.op.ptr.ptr);
    end.pitch = operand.op.ptr.rowLength * element;
    end.height = operand.op.ptr.layerHeight;
    return end;
}

bool valid(const CUmemcpy3DOperand& operand) {
    return operand.type == CU_MEMCPY_OPERAND_TYPE_POINTER || operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
}

CUresult copy_each(size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, size_t& failed, unsigned long long flags,
                   CUstream stream) {
    failed = SIZE_MAX;
    if (count == 0 || !operations || flags != 0 || stream == CU_STREAM_LEGACY)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
        const CUDA_MEMCPY3D_BATCH_OP& operation = operations[i];
        failed = i;
        if (!valid(operation.src) || !valid(operation.dst) || !valid(operation.srcAccessOrder))
            return CUDA_ERROR_INVALID_VALUE;
        uint64_t element = 1;
        CUresult status = element_of(operation.src, element);
        if (status == CUDA_SUCCESS) status = element_of(operation.dst, element);
        if (status != CUDA_SUCCESS) return status;
        Transfer box{end_of(operation.dst, element), end_of(operation.src, element),
                     operation.extent.width * element, operation.extent.height, operation.extent.depth};
        status = transfer(box, stream, manner_of(operation.srcAccessOrder));
        if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                               CUstream stream) {
    size_t failed;
    return copy_each(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failed, stream);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, unsigned long long flags,
                                 CUstream stream) {
    size_t failed;
    return copy_each(numOps, opList, failed, flags, stream);
}

// Up to CUDA 12.9 the calls report the index of the copy that failed.

CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs, size_t* failIdx,
                            CUstream stream) {
    size_t failed;
    CUresult status = copy_each(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failed, stream);
    if (status != CUDA_SUCCESS && failIdx) *failIdx = failed;
    return status;
}

CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, size_t* failIdx,
                              unsigned long long flags, CUstream stream) {
    size_t failed;
    CUresult status = copy_each(numOps, opList, failed, flags, stream);
    if (status != CUDA_SUCCESS && failIdx) *failIdx = failed;
    return status;
}

}  // namespace smt::interpose::driver
