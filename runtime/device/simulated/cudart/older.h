// Structs of the runtimes of CUDA 11.8 and 12 that are others in CUDA 13: today's without its last fields,
// and the device's properties.
#pragma once

#include <cuda_runtime_api.h>
#include <string.h>

#include <cstddef>
#include <type_traits>

struct surfaceReference;  // of CUDA 11
struct textureReference;

namespace smt::cudart {

// The first bytes of a struct of today, which are the whole struct of an older runtime.
template <typename Struct, size_t Bytes>
struct FirstOf {
    static_assert(Bytes < sizeof(Struct) && std::is_trivially_copyable_v<Struct>);
    alignas(Struct) char bytes[Bytes];

    Struct today() const {
        Struct made{};
        memcpy(&made, bytes, Bytes);
        return made;
    }
    void set(const Struct& from) { memcpy(bytes, &from, Bytes); }
};

using PointerAttributes12 = FirstOf<cudaPointerAttributes, offsetof(cudaPointerAttributes, reserved)>;
using ResourceDesc12 =
    FirstOf<cudaResourceDesc, offsetof(cudaResourceDesc, res) + sizeof(cudaResourceDesc{}.res.pitch2D)>;
using ResourceViewDesc12 = FirstOf<cudaResourceViewDesc, offsetof(cudaResourceViewDesc, reserved)>;
using FuncAttributes11 = FirstOf<cudaFuncAttributes, offsetof(cudaFuncAttributes, clusterDimMustBeSet)>;
using TextureDesc11 = FirstOf<cudaTextureDesc, offsetof(cudaTextureDesc, seamlessCubemap)>;

struct DeviceProp12 {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    size_t memPitch;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int clockRate;
    size_t totalConstMem;
    int major;
    int minor;
    size_t textureAlignment;
    size_t texturePitchAlignment;
    int deviceOverlap;
    int multiProcessorCount;
    int kernelExecTimeoutEnabled;
    int integrated;
    int canMapHostMemory;
    int computeMode;
    int maxTexture1D;
    int maxTexture1DMipmap;
    int maxTexture1DLinear;
    int maxTexture2D[2];
    int maxTexture2DMipmap[2];
    int maxTexture2DLinear[3];
    int maxTexture2DGather[2];
    int maxTexture3D[3];
    int maxTexture3DAlt[3];
    int maxTextureCubemap;
    int maxTexture1DLayered[2];
    int maxTexture2DLayered[3];
    int maxTextureCubemapLayered[2];
    int maxSurface1D;
    int maxSurface2D[2];
    int maxSurface3D[3];
    int maxSurface1DLayered[2];
    int maxSurface2DLayered[3];
    int maxSurfaceCubemap;
    int maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels;
    int ECCEnabled;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int tccDriver;
    int asyncEngineCount;
    int unifiedAddressing;
    int memoryClockRate;
    int memoryBusWidth;
    int l2CacheSize;
    int persistingL2CacheMaxSize;
    int maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported;
    int globalL1CacheSupported;
    int localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int managedMemory;
    int isMultiGpuBoard;
    int multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
    int singleToDoublePrecisionPerfRatio;
    int pageableMemoryAccess;
    int concurrentManagedAccess;
    int computePreemptionSupported;
    int canUseHostPointerForRegisteredMem;
    int cooperativeLaunch;
    int cooperativeMultiDeviceLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables;
    int directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor;
    int accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported;
    int sparseCudaArraySupported;
    int hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported;
    int memoryPoolsSupported;
    int gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported;
    int ipcEventSupported;
    int clusterLaunch;
    int unifiedFunctionPointers;
    int reserved[63];
};
// CUDA 12 appended fields; programs that ask it for the shorter struct were compiled by CUDA 11.
using DeviceProp11 = FirstOf<DeviceProp12, offsetof(DeviceProp12, hostRegisterSupported)>;

}  // namespace smt::cudart
