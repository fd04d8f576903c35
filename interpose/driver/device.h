// Who has the last word on a call that was answered: given its status and its parameters; returns the status
// that the application sees.
#pragma once

#include <cuda.h>

namespace smt::interpose::adjust {

// What a device reached through smt cannot do although the GPU can.
CUresult cuDeviceGetAttribute(CUresult status, int* value, CUdevice_attribute attribute, CUdevice device);

// graph_kernel.cpp: parameters that were read back go with their node.
CUresult cuGraphDestroy(CUresult status, CUgraph graph);
CUresult cuGraphDestroyNode(CUresult status, CUgraphNode node);

}  // namespace smt::interpose::adjust
