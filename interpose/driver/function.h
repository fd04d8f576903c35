// Kernels: fetched from the server once by name, with everything that a launch needs.
#pragma once

#include <cuda.h>

#include "interpose/driver/objects.h"

namespace smt::interpose {

// The kernel `name` of an image: from the client's list, or with one call. NOT_FOUND if there is none.
CUresult fetch_function(Image& image, const char* name, Function*& function);

// The kernel with the server's id, or nullptr; for results that name a kernel (graph nodes).
Function* function_by_id(uint32_t id);

// The number of an image's kernels, and the kernels in the server's order, `capacity` at most. Null
// `functions` only counts.
CUresult enumerate_functions(Image& image, Function** functions, uint32_t capacity, uint32_t& count);

CUresult get_function_attribute(Function* function, CUfunction_attribute attribute, int* value);
CUresult set_function_attribute(Function* function, CUfunction_attribute attribute, int value);

}  // namespace smt::interpose
