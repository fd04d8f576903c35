// Turns the kernels of one translation unit of CUDA C++ into persistent form (rewriter/device/smt_worker.h).
//
// In: the text, what it may include, and the options that it is compiled with. Out: the text with every
// kernel twice (its own form under its own name, and the managed form, with what reuse.h says before the
// name), and a line for each kernel: managed, or refused with a reason. A kernel that is refused stays
// exactly as it was.
//
// A pure function of its arguments and of the files that the text includes; one thread at a time for each
// call, any number of calls. Throws nothing. Runs in the compile worker and in `smt rewrite`, never in the
// server: the text is a tenant's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rewriter/device/reuse.h"

namespace smt::rewriter::source {

enum class Dialect {
    kNvrtc,  // device code only, as NVRTC takes it
    kNvcc,   // a .cu file with host code, which is left alone
};

struct Input {
    std::string name;  // of the file, for messages
    std::string text;
    Dialect dialect = Dialect::kNvrtc;
    std::vector<std::pair<std::string, std::string>> headers;  // name and text; found before files
    std::vector<std::string> options;           // -I, -D, -std=, --gpu-architecture= ...; others are skipped
    std::vector<std::string> name_expressions;  // instantiations that are wanted (NVRTC's)
    std::string toolkit;                        // CUDA's root; its headers are included
};

// The path under which Clang sees the text of `input`.
std::string main_path(const Input& input);

struct RewrittenKernel {
    std::string name;              // as written: "blur<float>"
    std::string symbol;            // mangled, as the program asks for it
    std::string managed;           // mangled name of the managed form; empty: refused
    std::string reason;            // why it was refused
    Reuse reuse = Reuse::kAlways;  // of a worker, for further blocks
    int line = 0;                  // 0: it is in a header
};

struct Output {
    std::string text;  // includes "smt_worker.h"; equal to the input if no kernel is managed
    std::vector<RewrittenKernel> kernels;  // in the order of the file; a template once for each instantiation
    std::vector<std::string> name_expressions;  // what NVRTC must be asked for besides the input's
    std::string error;  // what keeps the whole text from being rewritten: "FILE:LINE: ..."
};

Output rewrite(const Input& input);

}  // namespace smt::rewriter::source
