// Physical memory that the application makes and maps itself: counted against the tenant's limit,
// mapped into the tenant's own reservations only.
#include <mutex>
#include <unordered_map>

#include "runtime/server/handlers/tenant_memory.h"
#include "runtime/server/handlers/tenant_ranges.h"
#include "runtime/server/session.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

namespace {

// Sizes of the physical memory in use: the driver does not tell them. Handles are unique in the
// process; an entry that a session left behind is replaced when the driver reuses its handle.
struct Physical {
    uint64_t bytes = 0;
    uint64_t references = 0;
};
std::mutex physical_mutex;
std::unordered_map<CUmemGenericAllocationHandle, Physical> physical;

// The last reference's bytes, else 0.
uint64_t let_go(CUmemGenericAllocationHandle handle) {
    std::lock_guard lock(physical_mutex);
    auto found = physical.find(handle);
    if (found == physical.end() || --found->second.references != 0) return 0;
    const uint64_t bytes = found->second.bytes;
    physical.erase(found);
    return bytes;
}

}  // namespace

CUresult cuMemCreate(Call& call, CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* wanted, unsigned long long flags) {
    if (!call.driver.cuMemCreate) return CUDA_ERROR_NOT_SUPPORTED;
    // NCCL and PyTorch ask for descriptors without asking whether the device can, and export them only to other processes.
    // The memory is made without; the export is what is refused.
    if (wanted->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    if (wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    CUmemAllocationProp properties = *wanted;
    properties.location.id = call.session.device().device();
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    properties.win32HandleMetaData = nullptr;

    handlers::TenantMemory& memory = call.session.memory();
    CUresult status = memory.charge(bytes);
    if (status != CUDA_SUCCESS) return status;
    status = call.driver.cuMemCreate(handle, bytes, &properties, flags);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
        handlers::TenantRanges::trim_all();
        status = call.driver.cuMemCreate(handle, bytes, &properties, flags);
    }
    if (status == CUDA_SUCCESS) {
        status = memory.zero_physical(*handle, bytes);
        if (status != CUDA_SUCCESS) call.driver.cuMemRelease(*handle);
    }
    if (status != CUDA_SUCCESS) {
        memory.discharge(bytes);
        return status;
    }
    std::lock_guard lock(physical_mutex);
    physical[*handle] = {bytes, 1};
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(Call& call, CUmemGenericAllocationHandle handle) {
    CUresult status = call.driver.cuMemRelease(handle);
    if (status == CUDA_SUCCESS) call.session.memory().discharge(let_go(handle));
    return status;
}

CUresult cuMemRetainAllocationHandle(Call& call, CUmemGenericAllocationHandle* handle, void* address) {
    const auto place = reinterpret_cast<CUdeviceptr>(address);
    if (!handle || !call.session.memory().reserved(place, 1)) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = call.driver.cuMemRetainAllocationHandle(handle, address);
    if (status != CUDA_SUCCESS) return status;
    std::lock_guard lock(physical_mutex);
    if (auto found = physical.find(*handle); found != physical.end()) ++found->second.references;
    return CUDA_SUCCESS;
}

CUresult cuMemMap(Call& call, CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    if (!call.session.memory().reserved(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = call.driver.cuMemMap(address, bytes, offset, handle, flags);
    if (status == CUDA_SUCCESS) call.session.memory().note_mapping(address, bytes);
    return status;
}

CUresult cuMemUnmap(Call& call, CUdeviceptr address, size_t bytes) {
    if (!call.session.memory().reserved(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = call.driver.cuMemUnmap(address, bytes);
    if (status == CUDA_SUCCESS) call.session.memory().forget_mappings(address, bytes);
    return status;
}

CUresult cuMemSetAccess(Call& call, CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptions,
                        size_t count) {
    if (!call.session.memory().reserved(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    return call.driver.cuMemSetAccess(address, bytes, descriptions, count);
}

CUresult cuMemGetAccess(Call& call, unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
    if (!call.session.memory().reserved(address, 1)) return CUDA_ERROR_INVALID_VALUE;
    if (!call.driver.cuMemGetAccess) return CUDA_ERROR_NOT_SUPPORTED;
    return call.driver.cuMemGetAccess(flags, location, address);
}

}  // namespace smt::runtime::server::served
