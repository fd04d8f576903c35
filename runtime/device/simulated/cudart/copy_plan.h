// A copy of any shape as one CUDA_MEMCPY3D, the driver's general form.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/device/simulated/cudart/registry.h"
#include "runtime/device/simulated/cudart/runtime.h"

namespace smt::cudart {

struct Copy {
    CUDA_MEMCPY3D plan{};
    cudaError_t error = cudaSuccess;  // why there is no plan

    // For the driver's graph calls, which report null as an invalid value.
    // NOLINTNEXTLINE(google-explicit-constructor): it is an argument of calls that are generated
    operator const CUDA_MEMCPY3D*() const { return error == cudaSuccess ? &plan : nullptr; }
};

// One end of a copy: memory with a pitch, or an array.
struct Place {
    void* pointer = nullptr;
    size_t pitch = 0;
    size_t height = 0;  // rows from one plane to the next
    cudaArray_const_t array = nullptr;
    size_t x = 0;  // bytes, rows, planes
    size_t y = 0;
    size_t z = 0;
};

// INVALID_MEMCPY_DIRECTION for a value that is no kind.
cudaError_t check_kind(cudaMemcpyKind kind);

Copy box_copy(const Place& to, const Place& from, cudaExtent bytes, cudaMemcpyKind kind);
Copy linear_copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
Copy copy_to(const Symbol& symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind);
Copy copy_from(void* to, const Symbol& symbol, size_t bytes, size_t offset, cudaMemcpyKind kind);
Copy shaped_copy(const cudaMemcpy3DParms* parameters);
// The inverse, for a program that reads a graph node's parameters.
cudaError_t describe(const CUDA_MEMCPY3D& plan, cudaMemcpy3DParms* parameters);

cudaError_t perform(const Copy& copy, Order order);

struct ArrayShape {
    size_t element_bytes;
    size_t row_bytes;
};
cudaError_t shape_of(cudaArray_const_t array, ArrayShape& shape);

}  // namespace smt::cudart
