// What a program can ask an image for by name, and whether another image has all of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace smt::runtime::jit {

// What `replacement` lacks of `original`, in words; empty: it can stand in for it. Both are PTX or cubins as
// NVRTC makes them, `original` may be a fatbin, and neither is trusted. Where both have PTX the kernels with
// their parameters and the visible variables with their types are compared, otherwise the names of the
// kernels. What cannot be read lacks everything.
std::string missing_from(std::string_view original, std::string_view replacement);

// The same for variables by their names, whatever their linkage.
std::string missing_variables(const std::vector<std::string>& names, std::string_view replacement);

// What an image names.
struct Symbols {
    std::vector<std::string> kernels;
    std::vector<std::string> variables;  // of modules, not of functions
    std::string problem;                 // why the image cannot be read; empty: it was
};
Symbols symbols_of(std::string_view image);

}  // namespace smt::runtime::jit
