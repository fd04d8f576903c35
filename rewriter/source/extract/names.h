// Names that nvcc makes for what other files cannot name.
//
//                          nvcc, with a hash of the file    Clang
//   unnamed namespace      _GLOBAL__N__1b2c_4_a_cu_5d6e     _GLOBAL__N_1
//   variables in one,      the same, inside of              the same
//   or static in another   _INTERNAL_1b2c_4_a_cu_5d6e
//   static, otherwise      as if it were not                an L before its name
//
// NVRTC has its own hash. So the extracted text has namespaces of nvcc's names in place of unnamed ones.
#pragma once

#include <string>
#include <vector>

namespace clang {
class ASTContext;
class VarDecl;
}  // namespace clang

namespace smt::rewriter::source {

struct FileNames {
    std::string unnamed;   // "_GLOBAL__N__1b2c_4_a_cu_5d6e"; empty: no symbol has it
    std::string internal;  // "_INTERNAL_1b2c_4_a_cu_5d6e"; empty: no symbol has it
};

FileNames find_file_names(const std::vector<std::string>& symbols);

// A symbol of nvcc's as symbol_of() has it.
std::string plain_symbol(const std::string& symbol, const FileNames& names);

// The symbol of a variable outside of functions.
std::string variable_symbol(clang::ASTContext& context, const clang::VarDecl* variable);

}  // namespace smt::rewriter::source
