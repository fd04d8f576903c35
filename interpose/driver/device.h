// Adjustments of results: each function takes a call's status and parameters and returns the status that the
// application sees.
#pragma once

#include <cuda.h>

namespace smt::interpose::adjust {

// Reports as absent the capabilities that the GPU has and smt does not support.
CUresult cuDeviceGetAttribute(CUresult status, int* value, CUdevice_attribute attribute, CUdevice device);

// No kernel on one device reaches memory of another.
CUresult cuDeviceCanAccessPeer(CUresult status, int* can, CUdevice device, CUdevice peer);
CUresult cuDeviceGetP2PAttribute(CUresult status, int* value, CUdevice_P2PAttribute attribute, CUdevice from,
                                 CUdevice to);

// In graph_kernel.cpp: frees the node parameters that were read back.
CUresult cuGraphDestroy(CUresult status, CUgraph graph);
CUresult cuGraphDestroyNode(CUresult status, CUgraphNode node);

}  // namespace smt::interpose::adjust
