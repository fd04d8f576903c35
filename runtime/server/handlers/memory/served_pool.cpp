// Memory pools: pools.h implements them without the driver's pools.
#include <cstring>

#include "runtime/protocol/api/sizes.h"
#include "runtime/server/memory/pools.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/session.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

namespace {

Pools& pools(Call& call) { return call.session.memory().pools(); }
uint64_t number(CUmemoryPool pool) { return reinterpret_cast<uint64_t>(pool); }
CUmemoryPool handle(uint64_t number) { return reinterpret_cast<CUmemoryPool>(number); }

CUresult give(CUmemoryPool* pool, uint64_t number) {
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    *pool = handle(number);
    return CUDA_SUCCESS;
}

// Pools exist on the device only.
CUresult check_place(const CUmemLocation& location, CUmemAllocationType type) {
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    return type == CU_MEM_ALLOCATION_TYPE_PINNED ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

CUresult cuMemPoolCreate(Call& call, CUmemoryPool* pool, const CUmemPoolProps* properties) {
    // As with cuMemCreate, an exportable pool can be made, but its export is refused.
    if (properties->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = check_place(properties->location, properties->allocType);
    if (status != CUDA_SUCCESS) return status;
    return pool ? give(pool, pools(call).create(properties->maxSize)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGraphMemTrim(Call& call, CUdevice) {
    call.session.memory().graphs().collect();
    call.session.memory().trim();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(Call& call, CUdevice, CUgraphMem_attribute attribute, void* value) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    return call.session.memory().graphs().get_attribute(attribute, static_cast<cuuint64_t*>(value));
}

CUresult cuDeviceSetGraphMemAttribute(Call& call, CUdevice, CUgraphMem_attribute attribute, void* value) {
    return call.session.memory().graphs().set_attribute(attribute, *static_cast<const cuuint64_t*>(value));
}

CUresult cuMemPoolDestroy(Call& call, CUmemoryPool pool) { return pools(call).destroy(number(pool)); }

CUresult cuMemPoolTrimTo(Call& call, CUmemoryPool pool, size_t bytes) {
    CUresult status = pools(call).trim(number(pool), bytes);
    if (status == CUDA_SUCCESS) call.session.memory().trim();
    return status;
}

CUresult cuMemPoolSetAttribute(Call& call, CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    uint64_t wide = 0;
    std::memcpy(&wide, value, protocol::pool_value_bytes(attribute));
    return pools(call).set_attribute(number(pool), attribute, wide);
}

CUresult cuMemPoolGetAttribute(Call& call, CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    uint64_t wide = 0;
    CUresult status = pools(call).get_attribute(number(pool), attribute, &wide);
    std::memcpy(value, &wide, protocol::pool_value_bytes(attribute));
    return status;
}

// The only device always has access.
CUresult cuMemPoolSetAccess(Call& call, CUmemoryPool, const CUmemAccessDesc* descriptions, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
        if (descriptions[i].location.id != call.session.device().device()) return CUDA_ERROR_INVALID_DEVICE;
        if (descriptions[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(Call& call, CUmemAccess_flags* flags, CUmemoryPool, CUmemLocation* location) {
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    const bool here =
        location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == call.session.device().device();
    *flags = here ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(Call&, CUmemoryPool* pool, CUdevice) {
    return give(pool, Pools::kDefaultPool);
}

CUresult cuDeviceGetMemPool(Call& call, CUmemoryPool* pool, CUdevice) {
    return give(pool, pools(call).current());
}

CUresult cuDeviceSetMemPool(Call& call, CUdevice, CUmemoryPool pool) {
    return pools(call).set_current(number(pool));
}

CUresult cuMemGetDefaultMemPool(Call&, CUmemoryPool* pool, CUmemLocation* location,
                                CUmemAllocationType type) {
    CUresult status = check_place(*location, type);
    return status == CUDA_SUCCESS ? give(pool, Pools::kDefaultPool) : status;
}

CUresult cuMemGetMemPool(Call& call, CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
    CUresult status = check_place(*location, type);
    return status == CUDA_SUCCESS ? give(pool, pools(call).current()) : status;
}

CUresult cuMemSetMemPool(Call& call, CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
    CUresult status = check_place(*location, type);
    return status == CUDA_SUCCESS ? pools(call).set_current(number(pool)) : status;
}

}  // namespace smt::runtime::server::served
