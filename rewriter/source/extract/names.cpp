// Names that nvcc makes for what other files cannot name.
#include "rewriter/source/extract/names.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/Mangle.h>
#include <llvm/Support/raw_ostream.h>

#include <cctype>
#include <memory>

namespace smt::rewriter::source {

namespace {

constexpr const char* kClangsUnnamed = "12_GLOBAL__N_1";

// The identifier that begins so, by the length ahead of it.
std::string find_identifier(const std::string& symbol, const std::string& beginning) {
    const size_t at = symbol.find(beginning);
    if (at == std::string::npos) return "";
    size_t digits = at;
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(symbol[digits - 1]))) --digits;
    // What stands ahead of the length may end in a digit too: the longest number that fits is not always it.
    for (; digits < at; ++digits) {
        const std::string number = symbol.substr(digits, at - digits);
        const size_t length = number.size() > 4 ? 0 : std::stoul(number);
        if (length > beginning.size() && at + length <= symbol.size()) return symbol.substr(at, length);
    }
    return "";
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
        text.replace(at, what.size(), by);
}

std::string with_length(const std::string& name) { return std::to_string(name.size()) + name; }

}  // namespace

FileNames find_file_names(const std::vector<std::string>& symbols) {
    FileNames names;
    for (const std::string& symbol : symbols) {
        if (names.unnamed.empty()) names.unnamed = find_identifier(symbol, "_GLOBAL__N__");
        if (names.internal.empty()) names.internal = find_identifier(symbol, "_INTERNAL_");
    }
    return names;
}

std::string plain_symbol(const std::string& symbol, const FileNames& names) {
    std::string plain = symbol;
    if (!names.internal.empty()) replace_all(plain, with_length(names.internal), "");
    if (!names.unnamed.empty()) replace_all(plain, with_length(names.unnamed), kClangsUnnamed);
    return plain;
}

std::string variable_symbol(clang::ASTContext& context, const clang::VarDecl* variable) {
    const std::string name = variable->getNameAsString();
    const bool made = llvm::isa<clang::VarTemplateSpecializationDecl>(variable);
    if (!made && variable->getDeclContext()->getRedeclContext()->isTranslationUnit()) return name;
    std::unique_ptr<clang::MangleContext> mangling(
        clang::ItaniumMangleContext::create(context, context.getDiagnostics()));
    if (!mangling->shouldMangleDeclName(variable)) return name;
    std::string symbol;
    llvm::raw_string_ostream out(symbol);
    mangling->mangleName(variable, out);
    const size_t at = symbol.find("L" + with_length(name));
    if (at != std::string::npos) symbol.erase(at, 1);
    return symbol;
}

}  // namespace smt::rewriter::source
