// Physical memory that the application makes and maps itself: counted against the tenant's limit and mapped
// only into the tenant's own reservations.
#include <utility>

#include "runtime/protocol/try.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/memory/tenant_ranges.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

namespace {

// The program has one device, independent of its number in the server.
CUmemLocation here(Call& call, CUmemLocation location) {
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) location.id = call.session.device().device();
    return location;
}

// Without special demands it is memory as any other: a keeper's, and such as other GPUs' servers can map.
CUresult make_physical(Call& call, size_t bytes, const CUmemAllocationProp& properties,
                       unsigned long long flags, device::PhysicalMemory::Made* made) {
    const bool plain = properties.type == CU_MEM_ALLOCATION_TYPE_PINNED && flags == 0 &&
                       properties.allocFlags.compressionType == 0 &&
                       properties.allocFlags.gpuDirectRDMACapable == 0 && properties.allocFlags.usage == 0;
    device::PhysicalMemory& memory = call.session.device().physical_memory();
    if (plain) return memory.make(bytes, made);
    return call.driver.cuMemCreate(&made->handle, bytes, &properties, flags);
}

}  // namespace

CUresult cuMemGetAllocationGranularity(Call& call, size_t* granularity, const CUmemAllocationProp* wanted,
                                       CUmemAllocationGranularity_flags option) {
    if (!call.driver.cuMemGetAllocationGranularity) return CUDA_ERROR_NOT_SUPPORTED;
    CUmemAllocationProp properties = *wanted;
    properties.location = here(call, wanted->location);
    return call.driver.cuMemGetAllocationGranularity(granularity, &properties, option);
}

CUresult cuMemCreate(Call& call, CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* wanted, unsigned long long flags) {
    if (!call.driver.cuMemCreate) return CUDA_ERROR_NOT_SUPPORTED;
    // The driver makes the memory without a handle type: what is exported is a descriptor of the server's
    // (sharing.h), which no other driver than this one takes.
    if (wanted->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    CUmemAllocationProp properties = *wanted;
    properties.location.id = call.session.device().device();
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    properties.win32HandleMetaData = nullptr;

    TenantMemory& memory = call.session.memory();
    Charge charge;
    CUresult status = memory.charge(bytes, &charge);
    if (status != CUDA_SUCCESS) return status;
    device::PhysicalMemory::Made made;
    status = make_physical(call, bytes, properties, flags, &made);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
        call.session.server().sharing().sweep();
        TenantRanges::trim_all();
        status = make_physical(call, bytes, properties, flags, &made);
    }
    if (status != CUDA_SUCCESS) return status;
    *handle = made.handle;
    status = memory.zero_physical(made.handle, bytes);
    if (status == CUDA_SUCCESS) {
        memory.note_physical(made.handle, std::make_shared<PhysicalAllocation>(
                                              call.session.device(), bytes, std::move(charge), made.id,
                                              wanted->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE));
    } else {
        call.driver.cuMemRelease(made.handle);
        call.session.device().physical_memory().forget(made.id);
    }
    return status;
}

// Mapped memory stays mapped and counted.
CUresult cuMemRelease(Call& call, CUmemGenericAllocationHandle handle) {
    PhysicalPointer memory = call.session.memory().release_physical(handle);
    CUresult status = call.driver.cuMemRelease(handle);
    if (status != CUDA_SUCCESS) call.session.memory().restore_physical(handle, std::move(memory));
    return status;
}

CUresult cuMemGetAllocationPropertiesFromHandle(Call& call, CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
    if (!call.driver.cuMemGetAllocationPropertiesFromHandle) return CUDA_ERROR_NOT_SUPPORTED;
    const CUresult status = call.driver.cuMemGetAllocationPropertiesFromHandle(properties, handle);
    if (status == CUDA_SUCCESS && properties && call.session.memory().exportable(handle))
        properties->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return status;
}

CUresult cuMemRetainAllocationHandle(Call& call, CUmemGenericAllocationHandle* handle, void* address) {
    const auto place = reinterpret_cast<CUdeviceptr>(address);
    if (!handle || !call.session.memory().reserved(place, 1)) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = call.driver.cuMemRetainAllocationHandle(handle, address);
    if (status == CUDA_SUCCESS) call.session.memory().retain_physical(*handle, place);
    return status;
}

CUresult cuMemUnmap(Call& call, CUdeviceptr address, size_t bytes) {
    if (!call.session.memory().reserved(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    auto mappings = call.session.memory().take_mappings(address, bytes);
    CUresult status = call.driver.cuMemUnmap(address, bytes);
    if (status != CUDA_SUCCESS) call.session.memory().restore_mappings(std::move(mappings));
    return status;
}

CUresult cuMemGetAccess(Call& call, unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
    if (!call.session.memory().reserved(address, 1)) return CUDA_ERROR_INVALID_VALUE;
    if (!call.driver.cuMemGetAccess) return CUDA_ERROR_NOT_SUPPORTED;
    const CUmemLocation place = here(call, *location);
    return call.driver.cuMemGetAccess(flags, &place, address);
}

}  // namespace smt::runtime::server::served

namespace smt::runtime::server::handlers {

CUresult handle_mem_map(Call& call) {
    protocol::MemMap request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    CUmemGenericAllocationHandle handle = request.handle;
    call.uses.add(HandleKind::kPhysicalMemory, handle);
    SMT_TRY(call.uses.begin());
    if (!call.session.memory().reserved(request.address, request.bytes)) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(call.driver.cuMemMap(request.address, request.bytes, request.offset, handle, request.flags));
    call.session.memory().note_mapping(request.address, request.bytes, handle);
    return CUDA_SUCCESS;
}

CUresult handle_find_mapping(Call& call) {
    protocol::Address request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    const BlockAllocator::Block mapping = call.session.memory().find(request.address);
    if (mapping.bytes == 0 || !call.session.memory().reserved(request.address, 1))
        return CUDA_ERROR_NOT_FOUND;
    call.out.scalar(protocol::MemAllocated{mapping.base, mapping.bytes});
    return CUDA_SUCCESS;
}

// Which of its devices a location names, the program knows: here the session's device is the only one.
CUresult handle_set_access(Call& call) {
    protocol::SetAccess request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    if (!call.session.memory().reserved(request.address, request.bytes)) return CUDA_ERROR_INVALID_VALUE;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = call.session.device().device();
    access.flags = static_cast<CUmemAccess_flags>(request.flags);
    return call.driver.cuMemSetAccess(request.address, request.bytes, &access, 1);
}

}  // namespace smt::runtime::server::handlers
