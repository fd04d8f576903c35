// The entry points that are there, as a table. What is not in this list the server answers with
// NOT_SUPPORTED.
#include "runtime/device/hosted/table.h"

namespace smt::runtime::device::hosted {

void fill(DriverApi& api) {
#define HAS(name) api.name = name
    // arrays.cpp
    HAS(cuArray3DCreate_v2);
    HAS(cuArrayCreate_v2);
    HAS(cuArray3DGetDescriptor_v2);
    HAS(cuArrayGetDescriptor_v2);
    HAS(cuArrayDestroy);
    HAS(cuMipmappedArrayCreate);
    HAS(cuMipmappedArrayGetLevel);
    HAS(cuMipmappedArrayDestroy);
    HAS(cuTexObjectCreate);
    HAS(cuTexObjectDestroy);
    HAS(cuTexObjectGetResourceDesc);
    HAS(cuSurfObjectCreate);
    HAS(cuSurfObjectDestroy);
    // capture.cpp
    HAS(cuStreamBeginCapture_v2);
    HAS(cuStreamBeginCaptureToGraph);
    HAS(cuStreamEndCapture);
    HAS(cuStreamIsCapturing);
    HAS(cuStreamGetCaptureInfo_v3);
    HAS(cuStreamGetCaptureInfo_v2);
    HAS(cuStreamUpdateCaptureDependencies_v2);
    HAS(cuThreadExchangeStreamCaptureMode);
    // copies.cpp
    HAS(cuMemcpyAsync);
    HAS(cuMemcpy);
    HAS(cuMemcpyHtoDAsync_v2);
    HAS(cuMemcpyDtoHAsync_v2);
    HAS(cuMemcpyDtoDAsync_v2);
    HAS(cuMemcpyHtoD_v2);
    HAS(cuMemcpyDtoH_v2);
    HAS(cuMemcpyDtoD_v2);
    HAS(cuMemcpy2DAsync_v2);
    HAS(cuMemcpy2D_v2);
    HAS(cuMemcpy3DAsync_v2);
    HAS(cuMemcpy3D_v2);
    HAS(cuMemsetD8Async);
    HAS(cuMemsetD16Async);
    HAS(cuMemsetD32Async);
    HAS(cuMemsetD2D8Async);
    HAS(cuMemsetD2D16Async);
    HAS(cuMemsetD2D32Async);
    // device.cpp
    HAS(cuInit);
    HAS(cuDriverGetVersion);
    HAS(cuGetErrorName);
    HAS(cuGetErrorString);
    HAS(cuDeviceGetCount);
    HAS(cuDeviceGet);
    HAS(cuDeviceGetName);
    HAS(cuDeviceGetUuid_v2);
    HAS(cuDeviceGetUuid);
    HAS(cuDeviceGetPCIBusId);
    HAS(cuDeviceGetByPCIBusId);
    HAS(cuDeviceTotalMem_v2);
    HAS(cuDeviceGetAttribute);
    HAS(cuDeviceComputeCapability);
    HAS(cuModuleGetLoadingMode);
    HAS(cuDevicePrimaryCtxRetain);
    HAS(cuDevicePrimaryCtxRelease_v2);
    HAS(cuDevicePrimaryCtxSetFlags_v2);
    HAS(cuDevicePrimaryCtxGetState);
    HAS(cuCtxSetCurrent);
    HAS(cuCtxGetCurrent);
    HAS(cuCtxPushCurrent_v2);
    HAS(cuCtxPopCurrent_v2);
    HAS(cuCtxGetDevice);
    HAS(cuCtxGetStreamPriorityRange);
    HAS(cuCtxGetLimit);
    HAS(cuCtxSetLimit);
    HAS(cuCtxGetCacheConfig);
    HAS(cuCtxSetCacheConfig);
    // graphs.cpp
    HAS(cuGraphCreate);
    HAS(cuGraphDestroy);
    HAS(cuGraphClone);
    HAS(cuGraphAddEmptyNode);
    HAS(cuGraphAddKernelNode_v2);
    HAS(cuGraphKernelNodeSetParams_v2);
    HAS(cuGraphKernelNodeGetParams_v2);
    HAS(cuGraphExecKernelNodeSetParams_v2);
    HAS(cuGraphAddMemcpyNode);
    HAS(cuGraphMemcpyNodeGetParams);
    HAS(cuGraphMemcpyNodeSetParams);
    HAS(cuGraphExecMemcpyNodeSetParams);
    HAS(cuGraphAddMemsetNode);
    HAS(cuGraphMemsetNodeGetParams);
    HAS(cuGraphMemsetNodeSetParams);
    HAS(cuGraphExecMemsetNodeSetParams);
    HAS(cuGraphAddHostNode);
    HAS(cuGraphHostNodeGetParams);
    HAS(cuGraphHostNodeSetParams);
    HAS(cuGraphExecHostNodeSetParams);
    HAS(cuGraphAddChildGraphNode);
    HAS(cuGraphAddNode_v2);
    HAS(cuGraphChildGraphNodeGetGraph);
    HAS(cuGraphExecChildGraphNodeSetParams);
    HAS(cuGraphNodeFindInClone);
    HAS(cuGraphDestroyNode);
    HAS(cuGraphNodeGetType);
    HAS(cuGraphGetNodes);
    HAS(cuGraphGetRootNodes);
    HAS(cuGraphGetEdges_v2);
    HAS(cuGraphNodeGetDependencies_v2);
    HAS(cuGraphAddDependencies_v2);
    HAS(cuGraphInstantiateWithFlags);
    HAS(cuGraphInstantiateWithParams);
    HAS(cuGraphExecUpdate_v2);
    HAS(cuGraphNodeSetEnabled);
    HAS(cuGraphExecDestroy);
    HAS(cuGraphKernelNodeGetAttribute);
    HAS(cuGraphUpload);
    HAS(cuGraphLaunch);
    // green.cpp
    HAS(cuDeviceGetDevResource);
    HAS(cuDevSmResourceSplitByCount);
    HAS(cuDevResourceGenerateDesc);
    HAS(cuGreenCtxCreate);
    HAS(cuGreenCtxDestroy);
    HAS(cuGreenCtxStreamCreate);
    // launches.cpp
    HAS(cuLaunchKernel);
    HAS(cuLaunchKernelEx);
    HAS(cuLaunchCooperativeKernel);
    HAS(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    HAS(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    HAS(cuOccupancyAvailableDynamicSMemPerBlock);
    // links.cpp
    HAS(cuLinkCreate_v2);
    HAS(cuLinkAddData_v2);
    HAS(cuLinkComplete);
    HAS(cuLinkDestroy);
    HAS(cuUserObjectCreate);
    HAS(cuUserObjectRetain);
    HAS(cuUserObjectRelease);
    HAS(cuGraphRetainUserObject);
    HAS(cuGraphBatchMemOpNodeGetParams);
    HAS(cuGraphAddEventRecordNode);
    HAS(cuGraphAddEventWaitNode);
    HAS(cuGraphEventRecordNodeGetEvent);
    HAS(cuGraphEventWaitNodeGetEvent);
    HAS(cuGraphExecEventRecordNodeSetEvent);
    HAS(cuGraphExecEventWaitNodeSetEvent);
    HAS(cuGraphReleaseUserObject);
    // memory.cpp
    HAS(cuMemGetInfo_v2);
    HAS(cuMemGetAllocationGranularity);
    HAS(cuMemAddressReserve);
    HAS(cuMemAddressFree);
    HAS(cuMemCreate);
    HAS(cuMemExportToShareableHandle);
    HAS(cuMemImportFromShareableHandle);
    HAS(cuMemRelease);
    HAS(cuMemRetainAllocationHandle);
    HAS(cuMemGetAllocationPropertiesFromHandle);
    HAS(cuMemMap);
    HAS(cuMemUnmap);
    HAS(cuMemSetAccess);
    HAS(cuMemGetAccess);
    HAS(cuMemAlloc_v2);
    HAS(cuMemFree_v2);
    HAS(cuMemHostRegister_v2);
    HAS(cuMemHostUnregister);
    HAS(cuMemHostGetDevicePointer_v2);
    // modules.cpp
    HAS(cuModuleLoadData);
    HAS(cuModuleLoadDataEx);
    HAS(cuModuleUnload);
    HAS(cuModuleGetFunction);
    HAS(cuModuleGetFunctionCount);
    HAS(cuModuleEnumerateFunctions);
    HAS(cuModuleGetGlobal_v2);
    HAS(cuLibraryLoadData);
    HAS(cuLibraryUnload);
    HAS(cuLibraryGetKernel);
    HAS(cuLibraryGetKernelCount);
    HAS(cuLibraryEnumerateKernels);
    HAS(cuLibraryGetModule);
    HAS(cuLibraryGetGlobal);
    HAS(cuLibraryGetManaged);
    HAS(cuKernelGetFunction);
    HAS(cuKernelGetLibrary);
    HAS(cuFuncGetModule);
    HAS(cuKernelGetName);
    HAS(cuFuncGetName);
    HAS(cuKernelGetParamInfo);
    HAS(cuFuncGetParamInfo);
    HAS(cuKernelGetAttribute);
    HAS(cuFuncGetAttribute);
    HAS(cuKernelSetAttribute);
    HAS(cuFuncSetAttribute);
    // streams.cpp
    HAS(cuStreamCreateWithPriority);
    HAS(cuStreamCreate);
    HAS(cuStreamDestroy_v2);
    HAS(cuStreamSynchronize);
    HAS(cuStreamQuery);
    HAS(cuCtxSynchronize);
    HAS(cuStreamGetPriority);
    HAS(cuStreamGetFlags);
    HAS(cuStreamGetId);
    HAS(cuStreamWriteValue64_v2);
    HAS(cuStreamWriteValue32_v2);
    HAS(cuStreamWaitValue64_v2);
    HAS(cuStreamWaitValue32_v2);
    HAS(cuStreamBatchMemOp_v2);
    HAS(cuLaunchHostFunc);
    HAS(cuEventCreate);
    HAS(cuEventDestroy_v2);
    HAS(cuEventRecordWithFlags);
    HAS(cuEventRecord);
    HAS(cuEventQuery);
    HAS(cuEventSynchronize);
    HAS(cuEventElapsedTime_v2);
    HAS(cuEventElapsedTime);
    HAS(cuStreamWaitEvent);
#undef HAS
}

}  // namespace smt::runtime::device::hosted
