// NVRTC's and nvcc's options, as far as they matter for parsing.
#pragma once

#include <string>
#include <vector>

namespace smt::rewriter::source {

struct Settings {
    std::vector<std::string> clang;  // -I, -isystem, -D, -U, -include, in their order
    std::string standard = "c++17";
    std::string processor = "sm_90";  // sm_90a ...
    int architecture = 900;           // what __CUDA_ARCH__ is
    bool extended_lambda = false;
};

// Reads both spellings (-arch=sm_90, --gpu-architecture compute_90). What does not matter is skipped.
Settings read_options(const std::vector<std::string>& options);

}  // namespace smt::rewriter::source
