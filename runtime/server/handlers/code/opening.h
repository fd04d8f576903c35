// What the server has to know of an image, and the code that its driver gets (runtime/jit/opened.h). A worker
// finds it out (runtime/jit/opener.h), and this process reads nothing of the image but its first bytes. It
// reads it itself
//
//   - on a device that executes PTX in this process,
//   - where SMT_COMPILE says by=driver, or there is no worker beside smtd, as the driver then compiles PTX
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/jit/opened.h"
#include "runtime/server/call.h"
#include "runtime/server/code/jit_options.h"

namespace smt::runtime::server::handlers {

// What is wrong with the image is CUDA_ERROR_INVALID_IMAGE, also if the worker is lost over it; without a
// worker that can be started it is CUDA_ERROR_OPERATING_SYSTEM. The reason is in the log, and in `jit`'s
// error log if it is the worker's.
CUresult open(Call& call, std::string_view image, JitOptions* jit, jit::Opened* opened);
// The same of an image as a program gave it: of a session with a fence the code is fenced.
CUresult open_given(Call& call, std::string_view image, JitOptions* jit, jit::Opened* opened);
CUresult open_link_input(Call& call, std::string_view input, JitOptions& jit, jit::Opened* opened);

// The image becomes the code that the device loads. CUDA_ERROR_NO_BINARY_FOR_GPU: it has none.
CUresult take_code(Call& call, jit::Opened& opened, std::vector<char>& image);

// 90 for compute capability 9.0.
int architecture_of(const Call& call);

}  // namespace smt::runtime::server::handlers
