// The one place that knows whether this build has the source rewriter (rewriter/source/).
#pragma once

#include "rewriter/source/rewrite.h"

namespace smt::runtime::jit {

using Rewrite = rewriter::source::Output (*)(const rewriter::source::Input&);

// In a build without LLVM: the text unchanged, no kernels, and an error that says so.
rewriter::source::Output rewrite_source(const rewriter::source::Input& input);

// Whether there is one; otherwise nothing that it says is worth keeping.
extern const bool has_source_rewriter;

}  // namespace smt::runtime::jit
