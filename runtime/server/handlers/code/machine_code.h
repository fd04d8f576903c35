// Machine code of what programs bring as PTX, or as the linker's inputs: made by the compile worker, so that
// the driver, in this process, gets cubins alone. Not on a device that executes PTX itself, nor where the
// build has no nvPTXCompiler or SMT_COMPILE says by=driver: the driver compiles and links then.
//
// What is neither PTX, a cubin, a fatbin, an object nor an archive goes to the driver, which refuses it by
// its first bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jit/opened.h"
#include "runtime/jit/source.h"
#include "runtime/server/call.h"
#include "runtime/server/code/jit_options.h"

namespace smt::runtime::server::handlers {

bool worker_makes_machine_code(Call& call);

// PTX, which `opened` is of, becomes the cubin of it. The logs are in `jit`. `own`: of what the program gave
// (jit::Opened::own), whose block sizes are to fit.
CUresult to_machine_code(Call& call, const jit::Opened& opened, std::vector<char>& image, JitOptions& jit,
                         const jit::OwnForm& own);

// The same without a wait: what is to be asked for (jit::Service::wait_for). `options`, `target`: of
// JitOptions.
std::string ask_for_machine_code(Call& call, const jit::Opened& opened, std::string text,
                                 std::vector<std::string> options, const std::string& target,
                                 const jit::OwnForm& own);

// Asks for the machine code of what was opened, as to_machine_code() does; whether it is not there yet.
bool is_being_assembled(Call& call, const jit::Opened& opened, std::string_view image, const JitOptions& jit,
                        const jit::OwnForm& own);

// Whether such an input of the linker is for the worker. `opened`: by open_link_input().
bool is_link_input(std::string_view bytes, const jit::Opened& opened);
// PTX becomes a relocatable cubin, which shows what is wrong with it. `more`: the input's own options.
CUresult to_link_input(Call& call, const jit::Opened& opened, jit::Input& input, JitOptions& jit,
                       const JitOptions& more);
// `missing`: there is no linker, and the driver is to do it.
CUresult link_inputs(Call& call, std::vector<jit::Input> inputs, JitOptions& jit, std::vector<char>* image,
                     bool* missing);

}  // namespace smt::runtime::server::handlers
