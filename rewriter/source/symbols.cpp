// Names of kernels in a compiled module.
#include "rewriter/source/symbols.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Mangle.h>
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>

#include <memory>

namespace smt::rewriter::source {

std::string symbol_of(clang::ASTContext& context, const clang::FunctionDecl* function) {
    std::unique_ptr<clang::MangleContext> mangling(
        clang::ItaniumMangleContext::create(context, context.getDiagnostics()));
    if (!mangling->shouldMangleDeclName(function)) return function->getNameAsString();
    std::string symbol;
    llvm::raw_string_ostream out(symbol);
    mangling->mangleName(clang::GlobalDecl(function, clang::KernelReferenceKind::Kernel), out);
    // Clang marks what is static with an L ahead of its name; NVIDIA's compilers do not.
    const std::string name =
        fmt::format("{}{}", function->getName().size(), std::string_view(function->getName()));
    const size_t at = symbol.find("L" + name);
    if (at != std::string::npos) symbol.erase(at, 1);
    return symbol;
}

std::string readable_name(clang::ASTContext& context, const clang::FunctionDecl* function) {
    clang::PrintingPolicy policy = context.getPrintingPolicy();
    policy.SuppressUnwrittenScope = true;
    policy.AnonymousTagLocations = false;
    std::string name;
    llvm::raw_string_ostream out(name);
    function->getNameForDiagnostic(out, policy, true);
    return name;
}

}  // namespace smt::rewriter::source
