// The registry of what nvcc-built programs register when they are loaded: images and their kernels and
// variables, each under the address of its host side. The driver receives an image when it is first needed.
//
// An image is loaded as a CUlibrary at the first use of anything in it, once for each generation of the
// primary context. Its kernels are looked up one by one.
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

// Called by the program's constructors and exit handlers; needs no driver. nullptr: out of memory.
Image* add_image(const FatbinWrapper* fatbin);
void remove_image(Image* image);
void add_kernel(Image* image, const void* host, const char* name);
void add_variable(Image* image, const void* host, const char* name, size_t bytes);
void add_managed(Image* image, void** host_pointer, const char* name, size_t bytes);

// Errors: INVALID_SYMBOL; INVALID_DEVICE_FUNCTION for a kernel that is registered but not in its image; the
// error of loading the image. The host side of a kernel may also be a CUkernel or a CUfunction that the
// program got from a library; any other value is an invalid handle, as in NVIDIA's runtime.
cudaError_t find_kernel(const void* host, RegisteredKernel& kernel);
cudaError_t find_symbol(const void* host, Symbol& symbol);

// Loads the image now and fills in the addresses of its managed variables.
cudaError_t load(Image* image);

// A registered kernel, without loading it; nullptr: there is none. Valid for the life of the process.
Entry* find_entry(const void* host);
cudaError_t resolve(Entry* entry, RegisteredKernel& kernel);
// The host side of a resolved kernel; nullptr: not a kernel of the program's own.
const void* host_side(CUfunction function);

}  // namespace smt::cudart
