// compile_commands.json, as CMake and others write it: how each file of a build was compiled.
#pragma once

#include <string>
#include <vector>

namespace smt::rewriter::source {

struct CompileCommand {
    std::string directory;
    std::string file;  // as it is written there
    std::vector<std::string>
        arguments;       // the compiler first; files of options (@file, --options-file) in place
    std::string output;  // empty: not said outside of the arguments
};

// In the file's order. `problem`: what is wrong with the file; empty: nothing.
std::vector<CompileCommand> read_compile_commands(const std::string& path, std::string& problem);

}  // namespace smt::rewriter::source
