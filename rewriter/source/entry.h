// The parts of a kernel's declaration, as the text spells them.
#pragma once

#include <clang/AST/Decl.h>

#include <string>

#include "rewriter/source/text.h"

namespace smt::rewriter::source {

enum class Parameters {
    kOwn,      // as they are; those without a name get one
    kManaged,  // without default arguments
    kBody,     // the same; what must not be copied (__grid_constant__) by reference
};

class Entry {
public:
    // A kernel's definition, or another declaration of it. Its name and its parameter list are spelled in the
    // text.
    Entry(const clang::FunctionDecl* declaration, const Text& text);

    unsigned begin = 0;  // of the whole declaration: template, extern "C", attributes
    unsigned open = 0;   // the brace, or the semicolon
    unsigned close = 0;  // the closing brace, or the semicolon

    std::string name() const;
    bool is_template() const;
    bool is_internal() const;
    bool has_pack() const;  // of parameters: its length must be told
    bool is_qualified() const { return name_begin_ != own_name_begin_; }
    std::string qualifier() const { return text_.piece(name_begin_, own_name_begin_); }  // "ns::"

    std::string template_head() const;                // "template <class T> ", and what stands up to the rest
    std::string template_arguments() const;           // "<T, Ts...>"; of a specialisation nothing
    std::string head(const std::string& name) const;  // all up to the parameter list, with another name
    std::string parameters(Parameters form) const;
    std::string arguments() const;  // ", a, b": to hand them on
    std::string tail() const;       // between the parameter list and the brace

private:
    std::string parameter_name(unsigned index) const;

    const clang::FunctionDecl* declaration_;
    const Text& text_;
    unsigned rest_begin_ = 0;  // past the template head
    unsigned name_begin_ = 0, own_name_begin_ = 0, name_end_ = 0;
    unsigned left_ = 0, right_ = 0;  // the parentheses
};

}  // namespace smt::rewriter::source
