// What the fake driver lacks, as functions that do nothing and succeed: so the server's handlers in front of
// them are reached. They give no objects.
#pragma once

#include "driver_api.gen.h"

namespace smt::fuzz {

template <typename... Parameters>
void fill(CUresult (*&function)(Parameters...)) {
    if (!function) function = [](Parameters...) { return CUDA_SUCCESS; };
}

template <typename... Functions>
void fill_all(Functions&... functions) {
    (fill(functions), ...);
}

inline DriverApi with_what_it_lacks(const DriverApi& driver) {
    DriverApi all = driver;
    fill_all(all.cuArrayGetSparseProperties, all.cuMipmappedArrayGetSparseProperties,
             all.cuArrayGetMemoryRequirements, all.cuMipmappedArrayGetMemoryRequirements, all.cuArrayGetPlane,
             all.cuCtxResetPersistingL2Cache, all.cuCtxGetExecAffinity, all.cuDeviceGetLuid,
             all.cuDeviceGetTexture1DLinearMaxWidth, all.cuDeviceGetHostAtomicCapabilities,
             all.cuDeviceGetExecAffinitySupport, all.cuDeviceGetProperties, all.cuFlushGPUDirectRDMAWrites,
             all.cuFuncSetSharedMemConfig, all.cuGraphAddEventRecordNode, all.cuGraphEventRecordNodeSetEvent,
             all.cuGraphAddEventWaitNode, all.cuGraphEventWaitNodeSetEvent,
             all.cuGraphNodeGetDependentNodes_v2, all.cuGraphRemoveDependencies_v2, all.cuGraphExecGetFlags,
             all.cuGraphExecEventRecordNodeSetEvent, all.cuGraphExecEventWaitNodeSetEvent,
             all.cuGraphNodeGetEnabled, all.cuGraphKernelNodeCopyAttributes,
             all.cuGraphKernelNodeGetAttribute, all.cuGraphKernelNodeSetAttribute,
             all.cuGraphConditionalHandleCreate, all.cuGraphGetEdges, all.cuGraphNodeGetDependencies,
             all.cuGraphNodeGetDependentNodes, all.cuGraphAddDependencies, all.cuGraphRemoveDependencies,
             all.cuGraphInstantiate_v2, all.cuModuleGetSurfRef, all.cuDeviceCanAccessPeer,
             all.cuDeviceGetP2PAttribute, all.cuDeviceGetP2PAtomicCapabilities, all.cuStreamCopyAttributes,
             all.cuTensorMapEncodeIm2col, all.cuTensorMapEncodeIm2colWide, all.cuTensorMapReplaceAddress,
             all.cuTexRefSetArray, all.cuTexRefSetMipmappedArray, all.cuTexRefSetAddress_v2,
             all.cuTexRefSetAddress2D_v3, all.cuTexRefSetFormat, all.cuTexRefSetAddressMode,
             all.cuTexRefSetFilterMode, all.cuTexRefSetMipmapFilterMode, all.cuTexRefSetMipmapLevelBias,
             all.cuTexRefSetMipmapLevelClamp, all.cuTexRefSetMaxAnisotropy, all.cuTexRefSetBorderColor,
             all.cuTexRefGetAddress_v2, all.cuTexRefGetArray, all.cuTexRefGetMipmappedArray,
             all.cuTexRefGetAddressMode, all.cuTexRefGetFilterMode, all.cuTexRefGetFormat,
             all.cuTexRefGetMipmapFilterMode, all.cuTexRefGetMipmapLevelBias, all.cuTexRefGetMipmapLevelClamp,
             all.cuTexRefGetMaxAnisotropy, all.cuTexRefGetBorderColor, all.cuTexRefCreate,
             all.cuTexRefDestroy, all.cuSurfRefSetArray, all.cuSurfRefGetArray, all.cuTexObjectGetTextureDesc,
             all.cuTexObjectGetResourceViewDesc, all.cuSurfObjectGetResourceDesc, all.cuTexRefSetAddress2D_v2,
             all.cuMemGetAccess);
    return all;
}

}  // namespace smt::fuzz
