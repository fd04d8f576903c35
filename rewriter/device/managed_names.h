// Names of managed forms. The name alone tells a launcher whether a worker may run one block after the other
// ("smt_single_blur": it may not).
#pragma once

#include <string>
#include <string_view>

#include "rewriter/device/reuse.h"

namespace smt {

// "blur" -> "smt_blur", in CUDA C++.
std::string managed_name(std::string_view name, Reuse reuse);

// The symbol of a kernel's managed form in CUDA C++, as compilers mangle it, with smt::Launch as its last
// parameter: "_Z4blurIfEvPT_" -> "_Z8smt_blurIfEvPT_N3smt6LaunchE"; "blur" (extern "C") -> "smt_blur". It is
// computed without a compiler, because Clang mangles unnamed namespaces and lambdas differently from NVIDIA's
// compilers. "": `symbol` is that of a managed form, or not a name that a compiler makes.
std::string managed_symbol(std::string_view symbol, Reuse reuse);

}  // namespace smt
