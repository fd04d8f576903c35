// Names of kernels in a compiled module.
#pragma once

#include <string>

namespace clang {
class ASTContext;
class FunctionDecl;
}  // namespace clang

namespace smt::rewriter::source {

// The symbol that NVIDIA's compilers give to this kernel. In an unnamed namespace they put a name of their
// own, with a hash of the file, where this has "_GLOBAL__N_1".
std::string symbol_of(clang::ASTContext& context, const clang::FunctionDecl* function);

// "blur<float>", with namespaces.
std::string readable_name(clang::ASTContext& context, const clang::FunctionDecl* function);

}  // namespace smt::rewriter::source
