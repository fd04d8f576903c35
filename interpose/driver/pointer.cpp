// Pointer attributes, from the map of ranges.
#include <cstring>

#include "driver.gen.h"
#include "interpose/driver/context.h"
#include "interpose/driver/memory.h"

namespace smt::interpose::driver {
namespace {

constexpr uint64_t kMappingUnit = 2ull << 20;

template <typename T>
CUresult give(void* data, T value) {
    std::memcpy(data, &value, sizeof(T));
    return CUDA_SUCCESS;
}
CUresult give_flag(void* data, bool value) { return give<unsigned>(data, value); }

// Stream-ordered and virtual memory belong to no context.
CUcontext context_of(const Range& range) {
    const bool none = range.memory == Memory::kPool || range.memory == Memory::kVirtual;
    return none ? nullptr : interpose::context_of(*range.session);
}

CUresult memory_type(void* data, const Range& range) {
    bool host = !on_device(range.memory) && range.memory != Memory::kManaged;
    return give<unsigned>(data, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
}

CUresult device_pointer(void* data, const Range& range, uint64_t address) {
    if (range.memory == Memory::kNoted) return CUDA_ERROR_INVALID_VALUE;
    return give(data, range.memory == Memory::kRegistered ? range.translated(address) : address);
}

CUresult host_pointer(void* data, const Range& range, uint64_t address) {
    if (on_device(range.memory)) return CUDA_ERROR_INVALID_VALUE;
    return give(data, range.memory == Memory::kAlias ? range.translated(address) : address);
}

// Memory from the device's current pool has no recorded handle; that pool is taken to be the default one.
CUresult pool_of(void* data, const Range& range) {
    CUmemoryPool pool = reinterpret_cast<CUmemoryPool>(range.handle);
    if (range.memory != Memory::kPool) return give<CUmemoryPool>(data, nullptr);
    if (pool) return give(data, pool);
    CUresult status = driver::cuDeviceGetDefaultMemPool(&pool, range.session->device());
    return status == CUDA_SUCCESS ? give(data, pool) : status;
}

// What is mapped in a range of the program's own is known to the server only.
CUresult handle_types(void* data, const Range& range, uint64_t address) {
    CUmemAllocationProp properties{};
    CUmemGenericAllocationHandle handle = 0;
    if (range.memory == Memory::kVirtual &&
        ::cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address)) == CUDA_SUCCESS) {
        ::cuMemGetAllocationPropertiesFromHandle(&properties, handle);
        ::cuMemRelease(handle);
    }
    return give<unsigned long long>(data, properties.requestedHandleTypes);
}

protocol::MemAllocated mapping_of(const Range& range, uint64_t address) {
    protocol::MemAllocated mapping{address & ~(kMappingUnit - 1), kMappingUnit};
    if (range.memory == Memory::kVirtual && find_mapping(range, address, mapping) != CUDA_SUCCESS) return {};
    return mapping;
}

CUresult access_flags(void* data, const Range& range, uint64_t address) {
    unsigned long long flags = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    CUmemLocation here{};
    here.type = CU_MEM_LOCATION_TYPE_DEVICE;
    here.id = range.session->device();
    if (range.memory == Memory::kVirtual && ::cuMemGetAccess(&flags, &here, address) != CUDA_SUCCESS)
        flags = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
    return give<unsigned>(data, static_cast<unsigned>(flags));
}

// INVALID_VALUE where the attribute does not apply to the range.
CUresult answer(void* data, CUpointer_attribute attribute, const Range& range, uint64_t address) {
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return give(data, context_of(range));
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return memory_type(data, range);
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return device_pointer(data, range, address);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            return host_pointer(data, range, address);
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            return give_flag(data, range.sync_memops);
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            return give<unsigned long long>(data, range.id);
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return give_flag(data, range.memory == Memory::kManaged);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return give<int>(data, range.session->device());
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            return give_flag(data, range.memory == Memory::kDevice);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            return give(data, range.base);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return give<size_t>(data, range.bytes);
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return give_flag(data, mapping_of(range, address).bytes != 0);
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            return handle_types(data, range, address);
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
            return give_flag(data, false);
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return access_flags(data, range, address);
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            return pool_of(data, range);
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            return give<size_t>(data, mapping_of(range, address).bytes);
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            return give<CUdeviceptr>(data, mapping_of(range, address).address);
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return give<unsigned long long>(data, range.id);
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
            return give_flag(data, false);
        default:
            return CUDA_ERROR_NOT_SUPPORTED;  // for example P2P_TOKENS
    }
}

// The result of cuPointerGetAttributes for a pointer unknown to CUDA, or for an attribute that does not
// apply.
CUresult answer_nothing(void* data, CUpointer_attribute attribute) {
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return give<uint64_t>(data, 0);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return give<int>(data, CU_DEVICE_INVALID);
        case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            return give<unsigned>(data, 0);
    }
}

bool known(CUpointer_attribute attribute) {
    return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT &&
           attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    if (!data || !known(attribute)) return CUDA_ERROR_INVALID_VALUE;
    Range range;
    if (!find_range(ptr, range)) return CUDA_ERROR_INVALID_VALUE;
    return answer(data, attribute, range, ptr);
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr ptr) {
    if (numAttributes == 0 || !attributes || !data) return CUDA_ERROR_INVALID_VALUE;
    Range range;
    bool found = find_range(ptr, range);
    for (unsigned i = 0; i < numAttributes; ++i) {
        if (!data[i] || !known(attributes[i])) return CUDA_ERROR_INVALID_VALUE;
        CUresult status = found ? answer(data[i], attributes[i], range, ptr) : CUDA_ERROR_INVALID_VALUE;
        if (status == CUDA_ERROR_INVALID_VALUE) status = answer_nothing(data[i], attributes[i]);
        if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
}

// Fills look at it (memset.cpp). Other synchronous operations wait anyway, but for copies within the device.
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
    auto set = [](Range& range, const void* flag) {
        range.sync_memops = *static_cast<const unsigned*>(flag) != 0;
    };
    return change_range(ptr, set, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace smt::interpose::driver
