// Allocations of the application: device memory, host memory in the arena, pools, address ranges.
#include "runtime/protocol/layout.h"
#include "runtime/protocol/try.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

CUresult handle_mem_alloc(Call& call) {
    protocol::MemAlloc request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr address = 0;
    SMT_TRY(call.session.memory().allocate(request.bytes, &address));
    call.out.scalar(protocol::MemAllocated{address, request.bytes});
    return CUDA_SUCCESS;
}

// Running work may still use the memory, so free waits for it, as the driver's does.
CUresult handle_mem_free(Call& call) {
    protocol::Address request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    if (request.address == 0) return CUDA_SUCCESS;
    TenantMemory& memory = call.session.memory();
    BlockAllocator::Block block = memory.find(request.address);
    if (block.bytes == 0 || block.base != request.address) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(call.session.streams().synchronize_all());
    if (memory.graphs().owns(request.address)) return memory.graphs().free(request.address, nullptr);
    SMT_TRY(memory.pools().forget(request.address));
    return memory.free(request.address);
}

// Managed memory is pinned host memory that the device accesses in place.
CUresult handle_host_alloc(Call& call) {
    protocol::MemAlloc request;
    if (!decode(call, request) || request.bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = 0;
    SMT_TRY(call.session.arena().allocate_host(request.bytes, true, &address));
    call.out.scalar(protocol::MemAllocated{address, request.bytes});
    return CUDA_SUCCESS;
}

CUresult handle_host_alloc_showing(Call& call) {
    auto request = call.in.scalar<protocol::HostPieces>();
    auto* pieces = call.in.take(uint64_t{request.count} * sizeof(protocol::HostPiece));
    if (!call.in.good()) return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = 0;
    CUresult status = call.session.arena().allocate_showing(
        request.bytes, reinterpret_cast<const protocol::HostPiece*>(pieces), request.count, &address);
    if (status) return status;
    call.out.scalar(protocol::MemAllocated{address, request.bytes});
    return CUDA_SUCCESS;
}

CUresult handle_host_free(Call& call) {
    protocol::Address request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    if (!call.session.arena().contains(request.address, 1)) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(call.session.streams().synchronize_all());
    return call.session.arena().free_host(request.address);
}

CUresult handle_mem_info(Call& call) {
    protocol::MemInfo info{};
    TenantMemory& memory = call.session.memory();
    memory.pools().collect();
    memory.graphs().collect();
    SMT_TRY(memory.info(&info.free, &info.total));
    call.out.scalar(info);
    return CUDA_SUCCESS;
}

// During a capture: graph_memory.h.
CUresult handle_mem_alloc_async(Call& call) {
    protocol::MemAllocAsync request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    StreamPointer target;
    SMT_TRY(call.find_stream(request.stream, &target));
    SMT_TRY(target->come_home());
    const CUstream stream = target->handle;
    CUdeviceptr address = 0;
    TenantMemory& memory = call.session.memory();
    CUresult status = call.session.streams().capturing(stream)
                          ? memory.graphs().allocate(request.bytes, stream, &address)
                          : memory.pools().allocate(request.pool, request.bytes, stream, &address);
    if (status) return status;
    call.out.scalar(protocol::MemAllocated{address, request.bytes});
    return CUDA_SUCCESS;
}

CUresult handle_mem_free_async(Call& call) {
    protocol::MemFreeAsync request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = nullptr;
    SMT_TRY(call.stream(request.stream, &stream));
    TenantMemory& memory = call.session.memory();
    if (call.session.streams().capturing(stream))
        return memory.graphs().free_captured(request.address, stream);
    return memory.pools().free(request.address, stream);
}

CUresult handle_address_reserve(Call& call) {
    protocol::AddressReserve request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr address = 0;
    CUresult status = call.session.memory().reserve(request.bytes, request.alignment, request.hint, &address);
    if (status) return status;
    call.out.scalar(protocol::MemAllocated{address, request.bytes});
    return CUDA_SUCCESS;
}

CUresult handle_address_free(Call& call) {
    protocol::AddressRange request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    return call.session.memory().release_reservation(request.address, request.bytes);
}

}  // namespace smt::runtime::server::handlers
