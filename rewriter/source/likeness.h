// What the threads of a warp have in common in an expression (rewriter/likeness.h), where blocks are a whole number of
// warps wide.
#pragma once

#include <clang/AST/Expr.h>

#include "rewriter/likeness.h"

namespace smt::rewriter::source {

// Of an expression in the kernel's body. Looks through its parameters and variables if nothing changes them; what
// comes from memory or out of a function differs.
Likeness likeness_of(const clang::Expr* expression, const clang::FunctionDecl* kernel);

}  // namespace smt::rewriter::source
