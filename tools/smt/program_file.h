// What an ELF file says of its C library, and of the CUDA runtime it was linked with.
#pragma once

#include <optional>
#include <string>

namespace smt::tools {

// For programs that are to run on the simulated device: only a shared runtime can be exchanged for ours.
// Whether a static one is ever called cannot be seen.
struct ProgramFile {
    bool is_elf = false;          // else a script, which may start anything
    std::string shared_runtime;   // libcudart.so.N, if it needs one
    bool static_runtime = false;  // NVIDIA's runtime is part of the file
    bool has_rpath = false;       // its folders go before LD_LIBRARY_PATH (DT_RUNPATH's go behind)
};

// Of a file that cannot be read nothing is known. A program of the driver API alone has neither runtime.
ProgramFile examine_program(const std::string& path);

// The loader that the kernel starts for it (PT_INTERP), which is its C library's; empty: none, it is
// statically linked. Nothing: not an ELF file of 64 bits, or it cannot be read.
std::optional<std::string> loader_of(const std::string& path);

}  // namespace smt::tools
