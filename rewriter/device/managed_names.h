// What managed forms are called: by the name alone whoever launches one can tell whether a worker may run one block
// after the other ("smt_single_blur": it may not).
#pragma once

#include <string>
#include <string_view>

#include "rewriter/device/reuse.h"

namespace smt {

// "blur" -> "smt_blur": in CUDA C++.
std::string managed_name(std::string_view name, Reuse reuse);

// From a kernel's symbol to that of its managed form in CUDA C++, as compilers mangle it, whose last parameter is
// smt::Launch: "_Z4blurIfEvPT_" -> "_Z8smt_blurIfEvPT_N3smt6LaunchE"; "blur" (extern "C") -> "smt_blur". Without a
// compiler, since what NVIDIA's make of unnamed namespaces and of lambdas Clang spells otherwise.
// "": the symbol is that of a managed form, or not a name that a compiler makes.
std::string managed_symbol(std::string_view symbol, Reuse reuse);

}  // namespace smt
