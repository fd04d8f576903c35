// cuGetExportTable: undocumented function tables that cudart and the libraries request from the driver. The
// real driver's tables are handed out unchanged, except for the functions that need a context in the process
// or take our handles (context-local storage, the context checks; see docs/design.md). Without a real driver
// there are no tables and NVIDIA's cudart cannot start: its check of the driver is the vendor's to answer.
#pragma once

#include <cuda.h>

namespace smt::interpose {

// The handle that the real driver would give the device's primary context. Does not create the context.
// nullptr: no real driver, or the driver does not report it.
CUcontext real_primary_context(CUdevice device);

// Runs the destructors of what was stored with the context, and forgets it. Called before the context goes.
void drop_local_storage(CUcontext context);

}  // namespace smt::interpose
