// Adjustments of results: each function takes a call's status and parameters and returns the status that the
// application sees.
#pragma once

#include <cuda.h>

namespace smt::interpose::adjust {

// Reports as absent the capabilities that the GPU has and smt does not support.
CUresult cuDeviceGetAttribute(CUresult status, int* value, CUdevice_attribute attribute, CUdevice device);

// As the driver says, without what smt does not support.
CUresult cuDeviceCanAccessPeer(CUresult status, int* can, CUdevice device, CUdevice peer);
CUresult cuDeviceGetP2PAttribute(CUresult status, int* value, CUdevice_P2PAttribute attribute, CUdevice from,
                                 CUdevice to);

// In peers.cpp: in place of the server's number of the device the program's.
CUresult cuMemGetAllocationPropertiesFromHandle(CUresult status, CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle);

// In peers.cpp: of another device than the memory's, what is open there. The server knows the memory's alone.
CUresult cuMemGetAccess(CUresult status, unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr ptr);

// In peers.cpp: closes to other devices what was unmapped.
CUresult cuMemUnmap(CUresult status, CUdeviceptr ptr, size_t size);

// In graph_kernel.cpp: frees the node parameters that were read back.
CUresult cuGraphDestroy(CUresult status, CUgraph graph);
CUresult cuGraphDestroyNode(CUresult status, CUgraphNode node);

// In stream.cpp: a stream's priority is known here, too.
CUresult cuStreamSetAttribute(CUresult status, CUstream stream, CUstreamAttrID attribute,
                              const CUstreamAttrValue* value);

}  // namespace smt::interpose::adjust
