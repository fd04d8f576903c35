// A compiler's command line for a CUDA file, read for what indexing needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rewriter/source/extract/compile_commands.h"

namespace smt::tools::index {

struct CommandLine {
    std::string file;                  // absolute
    std::string object;                // absolute
    std::string refusal;               // why its image cannot be replaced; empty: it can
    std::vector<std::string> options;  // as they are, for the rewriter's parser; folders absolute
    std::vector<std::string> nvrtc;    // what NVRTC is to be given
    std::vector<std::pair<std::string, std::string>>
        codes;  // "sm_90" and the "compute_90" that it was made from
};

// False: it compiles no CUDA. `toolkit`: whose headers NVRTC is to find.
bool read_command_line(const rewriter::source::CompileCommand& command, const std::string& toolkit,
                       CommandLine& line);

}  // namespace smt::tools::index
