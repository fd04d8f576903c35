// Compiles to nothing: generated calls hand enumerations through as they are, so the runtime's and the
// driver's must have the same values. The last of each is looked at, and where one has grown a gap.
#include <cuda.h>
#include <cuda_runtime_api.h>

namespace {

#define SAME(runtime, driver) static_assert(static_cast<int>(runtime) == static_cast<int>(driver), #runtime)

SAME(cudaErrorInvalidResourceConfiguration, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
SAME(cudaErrorSymbolNotFound, CUDA_ERROR_NOT_FOUND);
SAME(cudaErrorNoKernelImageForDevice, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(cudaErrorStreamCaptureWrongThread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SAME(cudaLimitPersistingL2CacheSize, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
SAME(cudaLimitMaxL2FetchGranularity, CU_LIMIT_MAX_L2_FETCH_GRANULARITY);
SAME(cudaFuncCachePreferEqual, CU_FUNC_CACHE_PREFER_EQUAL);
SAME(cudaSharedMemBankSizeEightByte, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
SAME(cudaFuncAttributeNonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME(cudaFuncAttributeMaxDynamicSharedMemorySize, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(cudaDevAttrMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(cudaDevAttrMaxBlocksPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
SAME(cudaDevAttrMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(cudaDevP2PAttrCudaArrayAccessSupported, CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED);
SAME(cudaEventInterprocess, CU_EVENT_INTERPROCESS);
SAME(cudaEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME(cudaStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME(cudaStreamCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(cudaStreamCaptureStatusInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(cudaHostAllocWriteCombined, CU_MEMHOSTALLOC_WRITECOMBINED);
SAME(cudaHostRegisterReadOnly, CU_MEMHOSTREGISTER_READ_ONLY);
SAME(cudaMemAttachSingle, CU_MEM_ATTACH_SINGLE);
SAME(cudaMemAdviseUnsetAccessedBy, CU_MEM_ADVISE_UNSET_ACCESSED_BY);
SAME(cudaMemRangeAttributeLastPrefetchLocationId, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
SAME(cudaMemLocationTypeHostNumaCurrent, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
SAME(cudaMemAllocationTypePinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(cudaMemPoolAttrUsedMemHigh, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(cudaMemAccessFlagsProtReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(cudaGraphMemAttrReservedMemHigh, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
SAME(cudaGraphNodeTypeConditional, CU_GRAPH_NODE_TYPE_CONDITIONAL);
SAME(cudaGraphNodeTypeMemFree, CU_GRAPH_NODE_TYPE_MEM_FREE);
SAME(cudaGraphExecUpdateErrorAttributesChanged, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
SAME(cudaLaunchAttributePreferredSharedMemoryCarveout, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
SAME(cudaLaunchAttributeProgrammaticStreamSerialization,
     CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(cudaArrayDeferredMapping, CUDA_ARRAY3D_DEFERRED_MAPPING);
SAME(cudaArrayTextureGather, CUDA_ARRAY3D_TEXTURE_GATHER);
SAME(cudaResourceTypePitch2D, CU_RESOURCE_TYPE_PITCH2D);
SAME(cudaResViewFormatUnsignedBlockCompressed7, CU_RES_VIEW_FORMAT_UNSIGNED_BC7);
SAME(cudaAddressModeBorder, CU_TR_ADDRESS_MODE_BORDER);
SAME(cudaFilterModeLinear, CU_TR_FILTER_MODE_LINEAR);
SAME(cudaJitOverrideDirectiveValues, CU_JIT_OVERRIDE_DIRECTIVE_VALUES);
SAME(cudaLibraryBinaryIsPreserved, CU_LIBRARY_BINARY_IS_PRESERVED);
SAME(cudaDeviceSyncMemops, CU_CTX_SYNC_MEMOPS);
SAME(cudaDeviceScheduleBlockingSync, CU_CTX_SCHED_BLOCKING_SYNC);
SAME(cudaEnablePerThreadDefaultStream, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
SAME(cudaDriverEntryPointVersionNotSufficent, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
SAME(cudaOccupancyDisableCachingOverride, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);

#undef SAME

}  // namespace
