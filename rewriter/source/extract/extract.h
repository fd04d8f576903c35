// The device's part of a .cu file as one text that NVRTC takes: its kernels with exactly what they depend on.
//
// In: the file as nvcc compiles it, and which kernels and variables the image that nvcc made of it has. Out:
// a text with those kernels, in all instances, and variables, under the same names; the types, functions and
// constants that they use; includes of CUDA's own headers. The program's macros are expanded, its headers are
// part of the text, the host's code is left out, and so is all that is not used.
//
// A pure function of its arguments and of the files that the text includes. Throws nothing.
#pragma once

#include <string>
#include <vector>

#include "rewriter/source/rewrite.h"

namespace smt::rewriter::source {

struct Wanted {
    std::vector<std::string> kernels;    // symbols, as in the image
    std::vector<std::string> variables;  // that the host names
};

struct Extract {
    std::string text;
    std::vector<std::string>
        variables;  // of the wanted ones those that the program wrote, as they are in the image
    std::vector<std::string> files;  // all that was read, the file itself first
    std::string error;               // why there is no text
};

// `wanted`: null means all kernels and device variables that the file has.
Extract extract(const Input& input, const Wanted* wanted);

}  // namespace smt::rewriter::source
