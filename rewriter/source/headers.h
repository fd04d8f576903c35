// The headers that every text finds without anything being installed: Clang's own, and what a CUDA compiler
// includes before the first line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace smt::rewriter::source {

struct Header {
    const char* name;
    std::string_view text;  // a zero byte follows it
};

// Clang's stddef.h and the like. The texts live as long as the program.
const std::vector<Header>& clang_headers();

// What NVRTC and nvcc say and include before the text; for an architecture like 900.
std::string nvrtc_prelude(int architecture);
std::string nvcc_prelude(int architecture, bool extended_lambda);

// smt_worker.h, which the rewritten text includes.
std::string worker_header();

// Headers that NVRTC has built in and the toolkit lacks.
const std::vector<Header>& nvrtc_headers();

}  // namespace smt::rewriter::source
