// From a kernel's symbol to that of its managed form, without a compiler.
#pragma once

#include <string>

#include "rewriter/device/reuse.h"

namespace smt::rewriter::source {

// "_Z4blurIfEvPT_", "blur" -> "_Z8smt_blurIfEvPT_N3smt6LaunchE"; "blur" (extern "C") -> "smt_blur".
// Empty: the symbol is not that of a function of this name. Works on what NVIDIA's compilers make of unnamed
// namespaces and of lambdas too, whose symbols Clang spells otherwise.
std::string managed_symbol(const std::string& symbol, const std::string& name, Reuse reuse = Reuse::kAlways);

// What the managed form is called: by it alone whoever launches it can tell whether a worker may run one block after
// the other ("smt_single_blur": it may not).
std::string managed_name(const std::string& name, Reuse reuse);

}  // namespace smt::rewriter::source
