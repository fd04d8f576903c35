// A library belongs to no context: the driver loads it into each context in which it is used. So an image
// that was loaded as a library in one session is loaded in another one when it is first used there. That
// image is its twin, and a kernel of the one has a twin in the other. The program may name either anywhere.
//
// What the image was loaded from is kept only where the process sees several devices, and copied only if the
// program did not promise to preserve it (CU_LIBRARY_BINARY_IS_PRESERVED).
#pragma once

#include <cuda.h>

#include "interpose/driver/image.h"
#include "interpose/driver/objects.h"

namespace smt::interpose {

// Keeps what the library was loaded from. Without memory for that it is this session's alone.
void keep_source(Image& image, const void* data, uint64_t bytes, bool preserved, const JitOptions& jit);

// The library's image and kernel in this_session(); what is no library's, or cannot be loaded there, stays.
Image* twin_here(Image* image);
Function* twin_here(Function* function);
CUmodule twin_here(CUmodule handle);
CUlibrary twin_here(CUlibrary handle);
CUfunction twin_here(CUfunction handle);
CUkernel twin_here(CUkernel handle);

// Unloads a library in each session.
CUresult unload_twins(Image* image);
// The images of this_session() are about to be released: the context is reset.
void forget_twins_here();

}  // namespace smt::interpose
