// What nvcc-built programs register when they are loaded: images, and the kernels and variables in
// them, each under the address of its host side. Nothing is sent to the driver before it is needed.
//
// An image is loaded as a CUlibrary at the first use of anything in it, once for each generation of
// the primary context. Its kernels are asked for one by one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "driver_api.gen.h"

namespace smt::cudart {

struct RegisteredKernel {
    CUkernel kernel;
    CUfunction function;
};
struct Symbol {
    CUdeviceptr address;
    size_t bytes;
};

struct FatbinWrapper;
struct Image;
struct Entry;

// Called by the program's constructors and exit handlers; need no driver. Null where there is no memory.
Image* add_image(const FatbinWrapper* fatbin);
void remove_image(Image* image);
void add_kernel(Image* image, const void* host, const char* name);
void add_variable(Image* image, const void* host, const char* name, size_t bytes);
void add_managed(Image* image, void** host_pointer, const char* name, size_t bytes);

// INVALID_SYMBOL, INVALID_DEVICE_FUNCTION for a kernel that is registered but not in its image, or what
// loading the image said. The host side of a kernel may also be a CUkernel or a CUfunction that the program
// got from a library, and anything else is an invalid handle: so NVIDIA's runtime sees it.
cudaError_t find_kernel(const void* host, RegisteredKernel& kernel);
cudaError_t find_symbol(const void* host, Symbol& symbol);

// Loads the image now and fills in the addresses of its managed variables.
cudaError_t load(Image* image);

// A registered kernel without loading it; null: there is none. It stays valid for the process.
Entry* find_entry(const void* host);
cudaError_t resolve(Entry* entry, RegisteredKernel& kernel);
// The host side of a kernel that was resolved; null: not one of the program's own.
const void* host_side(CUfunction function);

}  // namespace smt::cudart
