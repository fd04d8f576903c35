#include "interpose/driver/device.h"

#include "runtime/protocol/server_key.h"

namespace smt::interpose::adjust {

CUresult cuDeviceGetAttribute(CUresult status, int* value, CUdevice_attribute attribute, CUdevice) {
    if (status != CUDA_SUCCESS || !value) return status;
    switch (attribute) {
        // The kernel runs in the server, where the application's own pages are not mapped.
        case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
        case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
        // Registered memory is reached through the arena, at another address.
        case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
        case CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED:
        // Not supported; see docs/limits.md.
        case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
        case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK:
        case CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED:
            *value = 0;
            break;
        default:
            break;
    }
    return status;
}

// A fenced tenant's kernels reach its own range alone.
CUresult cuDeviceCanAccessPeer(CUresult status, int* can, CUdevice, CUdevice) {
    if (status == CUDA_SUCCESS && can && protocol::wants_fence()) *can = 0;
    return status;
}

// Arrays have no address that a peer could open.
CUresult cuDeviceGetP2PAttribute(CUresult status, int* value, CUdevice_P2PAttribute attribute, CUdevice,
                                 CUdevice) {
    const bool absent =
        attribute == CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED || protocol::wants_fence();
    if (status == CUDA_SUCCESS && value && absent) *value = 0;
    return status;
}

}  // namespace smt::interpose::adjust
