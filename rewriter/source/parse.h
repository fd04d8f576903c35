// One text through Clang, up to its syntax tree.
#pragma once

#include <functional>
#include <string>

#include "rewriter/source/rewrite.h"

namespace clang {
class ASTContext;
class Preprocessor;
}  // namespace clang

namespace smt::rewriter::source {

struct Problem {
    std::string message;  // "FILE:LINE: what Clang says"; empty: none
    int line = 0;         // of the text itself; 0: elsewhere

    explicit operator bool() const { return !message.empty(); }
};

// Parses `text` with everything else from `input`, as device code, and hands the tree to `use`, unless there
// is a problem. The tree lives as long as the call of `use`. Errors that only a compiler for the host or for
// the device would mind are none here, nor are those inside the toolkit's and the system's headers.
//
// The wanted instantiations (Input::name_expressions) are asked for at the end, past the text's last
// character. `begin`, if there is one, gets the preprocessor before the first token.
Problem parse(const Input& input, const std::string& text, const std::function<void(clang::ASTContext&)>& use,
              const std::function<void(clang::Preprocessor&)>& begin = {});

}  // namespace smt::rewriter::source
