// cuGetExportTable: undocumented tables of functions that cudart and the libraries ask the driver
// for. The real driver's are handed out as they are, but for two that would need a real context:
// context-local storage and the context checks. Without a real driver there is none, and NVIDIA's
// cudart cannot start: the check it makes of its driver is the vendor's to answer, not ours.
#pragma once

#include <cuda.h>

namespace smt::interpose {

// The handle the real driver would give the primary context of a device. Does not create it.
// nullptr: no real driver, or it does not say.
CUcontext real_primary_context(CUdevice device);

// The context is about to go: runs the destructors of what was stored with it, and forgets it.
void drop_local_storage(CUcontext context);

}  // namespace smt::interpose
