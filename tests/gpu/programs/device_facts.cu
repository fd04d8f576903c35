// Prints what the device says of itself: smt must not change it, but for what it does not serve.
#include <cuda.h>

#include "program.h"

// These say 0 under smt, whatever the device can: the kernels run in another process, so they reach neither
// the program's own pages nor memory that other programs hold. docs/limits.md lists them.
bool adjusted(int attribute) {
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
        case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
        case CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED:
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
            return true;
        default:
            return false;
    }
}

int main() {
    Result result;
    int count = 0, driver = 0, runtime = 0, device = -1, least = 0, greatest = 0;
    CHECK(cudaGetDeviceCount(&count));
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    std::printf("devices %d, driver %d, runtime %d, current %d, priorities %d %d\n", count, driver, runtime,
                device, least, greatest);
    cudaDeviceProp properties = {};
    CHECK(cudaGetDeviceProperties(&properties, 0));
    std::printf("%s, sm_%d%d, %d SMs, %zu bytes, L2 %d, bus %d:%d:%d\nuuid ", properties.name,
                properties.major, properties.minor, properties.multiProcessorCount, properties.totalGlobalMem,
                properties.l2CacheSize, properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
    for (char byte : properties.uuid.bytes) std::printf("%02x", static_cast<unsigned char>(byte));
    std::printf("\n");
    char bus[32] = {};
    CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    CHECK(cudaDeviceGetByPCIBusId(&device, bus));
    std::printf("%s is device %d\n", bus, device);
    for (int attribute = 1; attribute <= 160; ++attribute) {
        int value = 0;
        if (adjusted(attribute)) continue;
        const cudaError_t status = cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(attribute), 0);
        if (status == cudaSuccess) std::printf("attribute %d: %d\n", attribute, value);
        cudaGetLastError();
        result.fold(value);
    }
    for (int limit = 0; limit <= 6; ++limit) {
        size_t value = 0;
        const cudaError_t status = cudaDeviceGetLimit(&value, static_cast<cudaLimit>(limit));
        std::printf("limit %d: %zu (%d)\n", limit, value, status);
        cudaGetLastError();
    }
    unsigned flags = 0;
    cudaFuncCache cache;
    CHECK(cudaGetDeviceFlags(&flags));
    CHECK(cudaDeviceGetCacheConfig(&cache));
    size_t free = 0, total = 0;
    CHECK(cudaMemGetInfo(&free, &total));
    std::printf("flags %u, cache %d, total memory %zu\n", flags, cache, total);
    result.expect(free > 0 && free <= total, "free memory");
    return result.finish();
}
