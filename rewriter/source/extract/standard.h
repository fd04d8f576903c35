// The host's C and C++ library, as far as NVRTC has something in its place.
//
// NVRTC knows none of the host's headers, and does not take them: they are written for another compiler. It has
// CUDA's functions without any include, and libcu++ (<cuda/std/...>) beside it.
#pragma once

#include <clang/AST/Decl.h>

#include <set>
#include <string>

namespace smt::rewriter::source {

class Standard {
public:
    explicit Standard(const clang::ASTContext& context) : context_(context) {}

    // Takes note of something that the program uses; false: NVRTC has nothing like it.
    bool take(const clang::NamedDecl* declaration);

    std::string includes() const;      // lines
    std::string declarations() const;  // lines, behind them

private:
    bool has_global_function(const std::string& name) const;

    const clang::ASTContext& context_;
    std::set<std::string> headers_;
    std::set<std::string> lines_;
};

}  // namespace smt::rewriter::source
