// cudaDeviceProp, today's and that of CUDA 12: the driver's attribute for each field.
#include <stddef.h>
#include <string.h>

#include "cudart_written.gen.h"

namespace smt::cudart {

namespace {

constexpr uint16_t kNowhere = UINT16_MAX;  // a struct without that field

struct Fact {
    CUdevice_attribute attribute;
    uint16_t today;  // offsets of the field
    uint16_t in_12;
    uint16_t bytes;  // 4: int or unsigned; 8: size_t
};

#define BYTES(type, field) sizeof(((type*)nullptr)->field)
#define FACT(name, field)                                                                        \
    {CU_DEVICE_ATTRIBUTE_##name, offsetof(cudaDeviceProp, field), offsetof(DeviceProp12, field), \
     BYTES(cudaDeviceProp, field)}
#define ADDED(name, field) \
    {CU_DEVICE_ATTRIBUTE_##name, offsetof(cudaDeviceProp, field), kNowhere, BYTES(cudaDeviceProp, field)}
#define REMOVED(name, field) \
    {CU_DEVICE_ATTRIBUTE_##name, kNowhere, offsetof(DeviceProp12, field), BYTES(DeviceProp12, field)}
constexpr Fact kFacts[] = {
    FACT(MAX_SHARED_MEMORY_PER_BLOCK, sharedMemPerBlock),
    FACT(MAX_REGISTERS_PER_BLOCK, regsPerBlock),
    FACT(WARP_SIZE, warpSize),
    FACT(MAX_PITCH, memPitch),
    FACT(MAX_THREADS_PER_BLOCK, maxThreadsPerBlock),
    FACT(MAX_BLOCK_DIM_X, maxThreadsDim[0]),
    FACT(MAX_BLOCK_DIM_Y, maxThreadsDim[1]),
    FACT(MAX_BLOCK_DIM_Z, maxThreadsDim[2]),
    FACT(MAX_GRID_DIM_X, maxGridSize[0]),
    FACT(MAX_GRID_DIM_Y, maxGridSize[1]),
    FACT(MAX_GRID_DIM_Z, maxGridSize[2]),
    FACT(TOTAL_CONSTANT_MEMORY, totalConstMem),
    FACT(COMPUTE_CAPABILITY_MAJOR, major),
    FACT(COMPUTE_CAPABILITY_MINOR, minor),
    FACT(TEXTURE_ALIGNMENT, textureAlignment),
    FACT(TEXTURE_PITCH_ALIGNMENT, texturePitchAlignment),
    FACT(MULTIPROCESSOR_COUNT, multiProcessorCount),
    FACT(INTEGRATED, integrated),
    FACT(CAN_MAP_HOST_MEMORY, canMapHostMemory),
    FACT(MAXIMUM_TEXTURE1D_WIDTH, maxTexture1D),
    FACT(MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, maxTexture1DMipmap),
    FACT(MAXIMUM_TEXTURE2D_WIDTH, maxTexture2D[0]),
    FACT(MAXIMUM_TEXTURE2D_HEIGHT, maxTexture2D[1]),
    FACT(MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, maxTexture2DMipmap[0]),
    FACT(MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, maxTexture2DMipmap[1]),
    FACT(MAXIMUM_TEXTURE2D_LINEAR_WIDTH, maxTexture2DLinear[0]),
    FACT(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, maxTexture2DLinear[1]),
    FACT(MAXIMUM_TEXTURE2D_LINEAR_PITCH, maxTexture2DLinear[2]),
    FACT(MAXIMUM_TEXTURE2D_GATHER_WIDTH, maxTexture2DGather[0]),
    FACT(MAXIMUM_TEXTURE2D_GATHER_HEIGHT, maxTexture2DGather[1]),
    FACT(MAXIMUM_TEXTURE3D_WIDTH, maxTexture3D[0]),
    FACT(MAXIMUM_TEXTURE3D_HEIGHT, maxTexture3D[1]),
    FACT(MAXIMUM_TEXTURE3D_DEPTH, maxTexture3D[2]),
    FACT(MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, maxTexture3DAlt[0]),
    FACT(MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, maxTexture3DAlt[1]),
    FACT(MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, maxTexture3DAlt[2]),
    FACT(MAXIMUM_TEXTURECUBEMAP_WIDTH, maxTextureCubemap),
    FACT(MAXIMUM_TEXTURE1D_LAYERED_WIDTH, maxTexture1DLayered[0]),
    FACT(MAXIMUM_TEXTURE1D_LAYERED_LAYERS, maxTexture1DLayered[1]),
    FACT(MAXIMUM_TEXTURE2D_LAYERED_WIDTH, maxTexture2DLayered[0]),
    FACT(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, maxTexture2DLayered[1]),
    FACT(MAXIMUM_TEXTURE2D_LAYERED_LAYERS, maxTexture2DLayered[2]),
    FACT(MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, maxTextureCubemapLayered[0]),
    FACT(MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, maxTextureCubemapLayered[1]),
    FACT(MAXIMUM_SURFACE1D_WIDTH, maxSurface1D),
    FACT(MAXIMUM_SURFACE2D_WIDTH, maxSurface2D[0]),
    FACT(MAXIMUM_SURFACE2D_HEIGHT, maxSurface2D[1]),
    FACT(MAXIMUM_SURFACE3D_WIDTH, maxSurface3D[0]),
    FACT(MAXIMUM_SURFACE3D_HEIGHT, maxSurface3D[1]),
    FACT(MAXIMUM_SURFACE3D_DEPTH, maxSurface3D[2]),
    FACT(MAXIMUM_SURFACE1D_LAYERED_WIDTH, maxSurface1DLayered[0]),
    FACT(MAXIMUM_SURFACE1D_LAYERED_LAYERS, maxSurface1DLayered[1]),
    FACT(MAXIMUM_SURFACE2D_LAYERED_WIDTH, maxSurface2DLayered[0]),
    FACT(MAXIMUM_SURFACE2D_LAYERED_HEIGHT, maxSurface2DLayered[1]),
    FACT(MAXIMUM_SURFACE2D_LAYERED_LAYERS, maxSurface2DLayered[2]),
    FACT(MAXIMUM_SURFACECUBEMAP_WIDTH, maxSurfaceCubemap),
    FACT(MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, maxSurfaceCubemapLayered[0]),
    FACT(MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, maxSurfaceCubemapLayered[1]),
    FACT(SURFACE_ALIGNMENT, surfaceAlignment),
    FACT(CONCURRENT_KERNELS, concurrentKernels),
    FACT(ECC_ENABLED, ECCEnabled),
    FACT(PCI_BUS_ID, pciBusID),
    FACT(PCI_DEVICE_ID, pciDeviceID),
    FACT(PCI_DOMAIN_ID, pciDomainID),
    FACT(TCC_DRIVER, tccDriver),
    FACT(ASYNC_ENGINE_COUNT, asyncEngineCount),
    FACT(UNIFIED_ADDRESSING, unifiedAddressing),
    FACT(GLOBAL_MEMORY_BUS_WIDTH, memoryBusWidth),
    FACT(L2_CACHE_SIZE, l2CacheSize),
    FACT(MAX_PERSISTING_L2_CACHE_SIZE, persistingL2CacheMaxSize),
    FACT(MAX_THREADS_PER_MULTIPROCESSOR, maxThreadsPerMultiProcessor),
    FACT(STREAM_PRIORITIES_SUPPORTED, streamPrioritiesSupported),
    FACT(GLOBAL_L1_CACHE_SUPPORTED, globalL1CacheSupported),
    FACT(LOCAL_L1_CACHE_SUPPORTED, localL1CacheSupported),
    FACT(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, sharedMemPerMultiprocessor),
    FACT(MAX_REGISTERS_PER_MULTIPROCESSOR, regsPerMultiprocessor),
    FACT(MANAGED_MEMORY, managedMemory),
    FACT(MULTI_GPU_BOARD, isMultiGpuBoard),
    FACT(MULTI_GPU_BOARD_GROUP_ID, multiGpuBoardGroupID),
    FACT(HOST_NATIVE_ATOMIC_SUPPORTED, hostNativeAtomicSupported),
    FACT(PAGEABLE_MEMORY_ACCESS, pageableMemoryAccess),
    FACT(CONCURRENT_MANAGED_ACCESS, concurrentManagedAccess),
    FACT(COMPUTE_PREEMPTION_SUPPORTED, computePreemptionSupported),
    FACT(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, canUseHostPointerForRegisteredMem),
    FACT(COOPERATIVE_LAUNCH, cooperativeLaunch),
    FACT(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, sharedMemPerBlockOptin),
    FACT(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, pageableMemoryAccessUsesHostPageTables),
    FACT(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, directManagedMemAccessFromHost),
    FACT(MAX_BLOCKS_PER_MULTIPROCESSOR, maxBlocksPerMultiProcessor),
    FACT(MAX_ACCESS_POLICY_WINDOW_SIZE, accessPolicyMaxWindowSize),
    FACT(RESERVED_SHARED_MEMORY_PER_BLOCK, reservedSharedMemPerBlock),
    FACT(HOST_REGISTER_SUPPORTED, hostRegisterSupported),
    FACT(SPARSE_CUDA_ARRAY_SUPPORTED, sparseCudaArraySupported),
    FACT(READ_ONLY_HOST_REGISTER_SUPPORTED, hostRegisterReadOnlySupported),
    FACT(TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, timelineSemaphoreInteropSupported),
    FACT(MEMORY_POOLS_SUPPORTED, memoryPoolsSupported),
    FACT(GPU_DIRECT_RDMA_SUPPORTED, gpuDirectRDMASupported),
    FACT(GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, gpuDirectRDMAFlushWritesOptions),
    FACT(GPU_DIRECT_RDMA_WRITES_ORDERING, gpuDirectRDMAWritesOrdering),
    FACT(MEMPOOL_SUPPORTED_HANDLE_TYPES, memoryPoolSupportedHandleTypes),
    FACT(DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, deferredMappingCudaArraySupported),
    FACT(IPC_EVENT_SUPPORTED, ipcEventSupported),
    FACT(CLUSTER_LAUNCH, clusterLaunch),
    FACT(UNIFIED_FUNCTION_POINTERS, unifiedFunctionPointers),
    ADDED(NUMA_CONFIG, deviceNumaConfig),
    ADDED(NUMA_ID, deviceNumaId),
    ADDED(MPS_ENABLED, mpsEnabled),
    ADDED(HOST_NUMA_ID, hostNumaId),
    ADDED(GPU_PCI_DEVICE_ID, gpuPciDeviceID),
    ADDED(GPU_PCI_SUBSYSTEM_ID, gpuPciSubsystemID),
    ADDED(HOST_NUMA_MULTINODE_IPC_SUPPORTED, hostNumaMultinodeIpcSupported),
    REMOVED(CLOCK_RATE, clockRate),
    REMOVED(GPU_OVERLAP, deviceOverlap),
    REMOVED(KERNEL_EXEC_TIMEOUT, kernelExecTimeoutEnabled),
    REMOVED(COMPUTE_MODE, computeMode),
    REMOVED(MAXIMUM_TEXTURE1D_LINEAR_WIDTH, maxTexture1DLinear),
    REMOVED(MEMORY_CLOCK_RATE, memoryClockRate),
    REMOVED(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, singleToDoublePrecisionPerfRatio),
    REMOVED(COOPERATIVE_MULTI_DEVICE_LAUNCH, cooperativeMultiDeviceLaunch),
};
#undef FACT
#undef ADDED
#undef REMOVED
#undef BYTES

template <typename Properties>
cudaError_t fill(Properties* properties, uint16_t Fact::* offset, int device) {
    if (!properties) return cudaErrorInvalidValue;
    if (cudaError_t failed = check_device(device)) return failed;
    memset(properties, 0, sizeof *properties);
    CUresult status = driver().cuDeviceGetName(properties->name, sizeof properties->name, device);
    if (status == CUDA_SUCCESS)
        status = driver().cuDeviceGetUuid_v2(reinterpret_cast<CUuuid*>(&properties->uuid), device);
    if (status == CUDA_SUCCESS) status = driver().cuDeviceTotalMem_v2(&properties->totalGlobalMem, device);
    if (status != CUDA_SUCCESS) return from_driver(status);
    for (const Fact& fact : kFacts) {
        int value = 0;
        if (fact.*offset == kNowhere) continue;
        // An attribute unknown to an older driver stays 0.
        if (driver().cuDeviceGetAttribute(&value, fact.attribute, device) != CUDA_SUCCESS) continue;
        char* field = reinterpret_cast<char*>(properties) + fact.*offset;
        size_t wide = size_t(value);
        fact.bytes == sizeof wide ? memcpy(field, &wide, sizeof wide) : memcpy(field, &value, sizeof value);
    }
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    return fill(properties, &Fact::today, device);
}

cudaError_t cudaGetDeviceProperties_v2(DeviceProp12* properties, int device) {
    return fill(properties, &Fact::in_12, device);
}

}  // namespace smt::cudart
