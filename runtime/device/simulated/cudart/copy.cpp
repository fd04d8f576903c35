// Copies between linear memory, pitched memory and variables. A copy of zero bytes does nothing.
#include "cudart_written.gen.h"
#include "runtime/device/simulated/cudart/convert.h"
#include "runtime/device/simulated/cudart/copy_plan.h"

namespace smt::cudart {

cudaError_t cudaMemcpy(void* to_memory, const void* from_memory, size_t bytes, cudaMemcpyKind kind,
                       Order order) {
    if (bytes == 0) return cudaSuccess;
    if (cudaError_t failed = check_kind(kind)) return failed;
    auto dst = as_driver(to_memory);
    auto src = as_driver(from_memory);
    switch (kind) {
        case cudaMemcpyHostToDevice:
            return from_driver(SMT_IN_ORDER(order, cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, dst, src, bytes));
        case cudaMemcpyDeviceToHost:
            return from_driver(SMT_IN_ORDER(order, cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, dst, src, bytes));
        case cudaMemcpyDeviceToDevice:
            return from_driver(SMT_IN_ORDER(order, cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, dst, src, bytes));
        default:
            return from_driver(SMT_IN_ORDER(order, cuMemcpy, cuMemcpyAsync, dst, src, bytes));
    }
}

cudaError_t cudaMemcpy2D(void* to_memory, size_t to_pitch, const void* from_memory, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind, Order order) {
    if (width == 0 || height == 0) return cudaSuccess;
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
    return perform(box_copy({to_memory, to_pitch, height},
                            {const_cast<void*>(from_memory), from_pitch, height}, {width, height, 1}, kind),
                   order);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters, Order order) {
    return perform(shaped_copy(parameters), order);
}

// All devices of a process are one, so a peer's memory is ordinary device memory.
cudaError_t cudaMemcpyPeer(void* to_memory, int to_device, const void* from_memory, int from_device,
                           size_t bytes, Order order) {
    if (cudaError_t failed = check_device(to_device)) return failed;
    if (cudaError_t failed = check_device(from_device)) return failed;
    return cudaMemcpy(to_memory, from_memory, bytes, cudaMemcpyDefault, order);
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* p, Order order) {
    if (!p) return cudaErrorInvalidValue;
    if (cudaError_t failed = check_device(p->dstDevice)) return failed;
    if (cudaError_t failed = check_device(p->srcDevice)) return failed;
    cudaMemcpy3DParms same{p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
                           p->dstPos,   p->dstPtr, p->extent, cudaMemcpyDefault};
    return perform(shaped_copy(&same), order);
}

cudaError_t cudaMemcpyToSymbol(const Symbol& symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind, Order order) {
    Copy copy = copy_to(symbol, from, bytes, offset, kind);
    if (copy.error != cudaSuccess) return copy.error;
    return cudaMemcpy(reinterpret_cast<void*>(symbol.address + offset), from, bytes, kind, order);
}

cudaError_t cudaMemcpyFromSymbol(void* to_memory, const Symbol& symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind, Order order) {
    Copy copy = copy_from(to_memory, symbol, bytes, offset, kind);
    if (copy.error != cudaSuccess) return copy.error;
    return cudaMemcpy(to_memory, reinterpret_cast<void*>(symbol.address + offset), bytes, kind, order);
}

cudaError_t cudaGetSymbolAddress(void** pointer, const Symbol& symbol) {
    if (!pointer) return cudaErrorInvalidValue;
    *pointer = reinterpret_cast<void*>(symbol.address);
    return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const Symbol& symbol) {
    if (!bytes) return cudaErrorInvalidValue;
    *bytes = symbol.bytes;
    return cudaSuccess;
}

}  // namespace smt::cudart
