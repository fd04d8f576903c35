// Context-local storage: values that a CUDA runtime stores with a context, through a table of
// cuGetExportTable.
#pragma once

#include <cuda.h>

namespace smt::interpose {

// The table's functions: put, delete, get.
const void* local_storage_table();

// Runs the destructors of what was stored with the context, and forgets it. Called before the context goes.
void drop_local_storage(CUcontext context);

}  // namespace smt::interpose
