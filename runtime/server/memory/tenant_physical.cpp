// Physical memory that the application makes and maps itself, and shares with other sessions of its tenant.
#include <utility>

#include "runtime/protocol/try.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

void TenantMemory::note_physical(CUmemGenericAllocationHandle handle, PhysicalPointer memory) {
    Lock lock(mutex_);
    physical_[handle] = {std::move(memory), 1};
}

PhysicalPointer TenantMemory::release_physical(CUmemGenericAllocationHandle handle) {
    Lock lock(mutex_);
    auto found = physical_.find(handle);
    if (found == physical_.end()) return nullptr;
    PhysicalPointer memory = found->second.memory;
    if (--found->second.handles == 0) physical_.erase(found);
    return memory;
}

void TenantMemory::restore_physical(CUmemGenericAllocationHandle handle, PhysicalPointer memory) {
    Lock lock(mutex_);
    Physical& physical = physical_[handle];
    physical.memory = std::move(memory);
    ++physical.handles;
}

CUresult TenantMemory::share_physical(CUmemGenericAllocationHandle handle, bool exported,
                                      PhysicalPointer* memory) {
    Lock lock(mutex_);
    const auto found = physical_.find(handle);
    if (found == physical_.end() || !found->second.memory ||
        (exported && !found->second.memory->exportable()))
        return CUDA_ERROR_INVALID_VALUE;
    *memory = found->second.memory;
    if ((*memory)->handle() != 0) return CUDA_SUCCESS;
    CUmemGenericAllocationHandle own = 0;
    SMT_TRY(another_handle(handle, (*memory)->bytes(), &own));
    (*memory)->own_handle(own);
    return CUDA_SUCCESS;
}

CUresult TenantMemory::import_physical(const PhysicalPointer& memory, CUmemGenericAllocationHandle* handle) {
    Lock lock(mutex_);
    SMT_TRY(another_handle(memory->handle(), memory->bytes(), handle));
    Physical& physical = physical_[*handle];
    physical.memory = memory;
    ++physical.handles;
    return CUDA_SUCCESS;
}

bool TenantMemory::exportable(CUmemGenericAllocationHandle handle) const {
    Lock lock(mutex_);
    const auto found = physical_.find(handle);
    return found != physical_.end() && found->second.memory && found->second.memory->exportable();
}

// The driver gives a further handle for an address only, so the memory is mapped for a moment.
CUresult TenantMemory::another_handle(CUmemGenericAllocationHandle handle, uint64_t bytes,
                                      CUmemGenericAllocationHandle* another) {
    const uint64_t base = take_addresses(bytes, kChunkBytes, 0);
    if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = driver_.cuMemMap(base, bytes, 0, handle, 0);
    if (status == CUDA_SUCCESS) {
        status = driver_.cuMemRetainAllocationHandle(another, reinterpret_cast<void*>(base));
        driver_.cuMemUnmap(base, bytes);
    }
    addresses_.release(base);
    return status;
}

}  // namespace smt::runtime::server
