// Machine code of what programs bring as PTX, or as the linker's inputs: made by the compile worker, so that the driver, in
// this process, gets cubins alone. Not on a device that executes PTX itself, nor where the build has no nvPTXCompiler or
// SMT_COMPILE says by=driver: the driver compiles and links then.
//
// What is neither PTX, a cubin, a fatbin, an object nor an archive goes to the driver, which refuses it by its first bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jit/source.h"
#include "runtime/server/call.h"
#include "runtime/server/handlers/jit_options.h"

namespace smt::runtime::server::handlers {

int architecture_of(Call& call);   // 90 for sm_90
bool worker_makes_machine_code(Call& call);

// An image of which the driver would compile PTX becomes the cubin of that; any other stays. The logs are in `jit`.
CUresult to_machine_code(Call& call, std::vector<char>& image, JitOptions& jit);

// Whether such an input of the linker is for the worker.
bool is_link_input(std::string_view bytes);
// PTX becomes a relocatable cubin, which shows what is wrong with it. `more`: the input's own options.
CUresult to_link_input(Call& call, jit::Input& input, JitOptions& jit, const JitOptions& more);
// `missing`: there is no linker, and the driver is to do it.
CUresult link_inputs(Call& call, std::vector<jit::Input> inputs, JitOptions& jit, std::vector<char>* image, bool* missing);

}  // namespace smt::runtime::server::handlers
