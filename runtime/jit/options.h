// A program's NVRTC options, as the compile worker may use them: without those that write files or have no
// part in what is made. The rest stays as it is, for what is made may name it (debug information has the
// folders).
#pragma once

#include <string>
#include <vector>

namespace smt::runtime::jit {

struct Options {
    std::vector<std::string> kept;
    std::string refusal;  // why this source cannot be compiled as a whole; empty: it can
};

Options prepare_options(const std::vector<std::string>& options);

// Whether it says for which architecture to compile.
bool is_architecture(const std::string& option);

// "sm_90": what the options say; empty: nothing, or something about how machine code is to be made besides.
std::string architecture_in(const std::vector<std::string>& options);

}  // namespace smt::runtime::jit
