// What an ELF file says of the CUDA runtime it was linked with, for programs that are to run on the
// simulated device: only a shared runtime can be exchanged for ours. Whether a static one is ever called
// cannot be seen.
#pragma once

#include <string>

namespace smt::tools {

struct ProgramFile {
    bool is_elf = false;          // else a script, which may start anything
    std::string shared_runtime;   // libcudart.so.N, if it needs one
    bool static_runtime = false;  // NVIDIA's runtime is part of the file
    bool has_rpath = false;       // its folders go before LD_LIBRARY_PATH (DT_RUNPATH's go behind)
};

// Of a file that cannot be read nothing is known. A program of the driver API alone has neither runtime.
ProgramFile examine_program(const std::string& path);

}  // namespace smt::tools
