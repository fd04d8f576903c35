// PTX text to a syntax tree.
//
//   auto parsed = smt::ptx::parse(text);
//   if (auto* problem = std::get_if<Diagnostic>(&parsed)) ... "line 12, column 5: add has no modifier .foo"
//
// The text is not trusted: nothing in it makes the parser crash, hang or use memory beyond a multiple of its
// length. All of PTX ISA 9.0 is read. The parser knows which modifiers an opcode takes and how many operands,
// and that a name is declared before it is used; types are checked when the module is
// executed or assembled.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "rewriter/ptx/syntax.h"

namespace smt::ptx {

struct Diagnostic {
    int line = 0;    // from 1
    int column = 0;  // from 1, in bytes
    std::string message;
};

std::string to_string(const Diagnostic& diagnostic);

// A NUL at the end of the text is no part of it.
[[nodiscard]] std::variant<Module, Diagnostic> parse(std::string_view text);

}  // namespace smt::ptx
