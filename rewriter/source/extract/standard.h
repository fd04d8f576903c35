// The host's C and C++ library, as far as NVRTC has something in its place.
//
// NVRTC knows none of the host's headers, and does not take them: they are written for another compiler. It
// has CUDA's functions without any include, and libcu++ (<cuda/std/...>) beside it.
#pragma once

#include <clang/AST/Decl.h>

#include <map>
#include <set>
#include <string>

namespace smt::rewriter::source {

// Macros for what other compilers know without any include (INFINITY's meaning, offsetof's), where `text` has
// it.
std::string builtin_stand_ins(const std::string& text);

class Standard {
public:
    explicit Standard(const clang::ASTContext& context) : context_(context) {}

    // Takes note of something that the program uses; false: NVRTC has nothing like it.
    bool take(const clang::NamedDecl* declaration);

    std::string includes() const;  // lines
    // Lines, behind them. `beside_libraries`: behind includes that have types of the same names, and in part
    // of another size or mangling: libcu++'s uint64_t is unsigned long long in NVRTC.
    std::string declarations(bool beside_libraries) const;

private:
    bool has_global_function(const std::string& name) const;

    const clang::ASTContext& context_;
    std::set<std::string> headers_;
    std::map<std::string, std::string> types_;  // and what they mean
    std::set<std::string> lines_;
};

}  // namespace smt::rewriter::source
