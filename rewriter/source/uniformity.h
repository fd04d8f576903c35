// What the threads of a warp have in common in an expression (rewriter/uniformity.h), where blocks are a
// whole number of warps wide.
#pragma once

#include <clang/AST/Expr.h>

#include "rewriter/uniformity.h"

namespace smt::rewriter::source {

// Of an expression in the kernel's body. Looks through its parameters and variables if nothing changes them;
// what comes from memory or out of a function differs.
Uniformity uniformity_of(const clang::Expr* expression, const clang::FunctionDecl* kernel);

}  // namespace smt::rewriter::source
