// Where the nodes of the syntax tree stand in the text that is rewritten.
#pragma once

#include <clang/AST/ASTContext.h>

#include <optional>
#include <string>

namespace smt::rewriter::source {

class Text {
public:
    Text(const clang::ASTContext& context, const std::string& text) : context_(context), text_(text) {}

    const std::string& all() const { return text_; }
    std::string piece(unsigned begin, unsigned end) const { return text_.substr(begin, end - begin); }

    // The offset of something that the text itself spells. Nothing: it stands in another file, or comes out
    // of a macro.
    std::optional<unsigned> spelled(clang::SourceLocation place) const;
    // The same, or the place where the macro is used.
    std::optional<unsigned> used(clang::SourceLocation place) const;
    // Past the token, or past the whole use of a macro.
    std::optional<unsigned> past(clang::SourceLocation token) const;

    bool here(clang::SourceLocation place) const { return used(place).has_value(); }
    // The macro that it comes out of; empty: none.
    std::string macro(clang::SourceLocation place) const;
    // "file.h" of "/a/b/file.h".
    std::string file(clang::SourceLocation place) const;
    int line(clang::SourceLocation place) const;
    int line(unsigned offset) const;

private:
    const clang::SourceManager& sources() const { return context_.getSourceManager(); }

    const clang::ASTContext& context_;
    const std::string& text_;
};

}  // namespace smt::rewriter::source
