// A translation unit as the parser saw it: its tokens after preprocessing, and how they are written again.
//
// Programs hide declarations in macros and parts of functions in #if; what the parser saw is what counts. So
// a text is written from these tokens: macros of the program are expanded, those of CUDA (__global__, assert)
// stay as they were spelled, comments stay where they stand between tokens of one file, and line breaks stay
// all.
#pragma once

#include <clang/Basic/SourceLocation.h>
#include <clang/Basic/TokenKinds.h>
#include <llvm/ADT/DenseMap.h>

#include <map>
#include <string>
#include <vector>

namespace clang {
class ASTContext;
class Preprocessor;
}  // namespace clang

namespace smt::rewriter::source {

struct Token {
    clang::SourceLocation where;
    unsigned length = 0;
    clang::tok::TokenKind kind = clang::tok::unknown;
};

// Where something begins and ends: [begin, end) in the order of tokens.
struct Span {
    unsigned begin = 0, end = 0;

    bool contains(unsigned at) const { return begin <= at && at < end; }
};

class Tokens {
public:
    // Collects what this preprocessor gives out from now on.
    void watch(clang::Preprocessor& preprocessor);
    // What is included, from where, as it is spelled there: "<cuda_fp16.h>". By the file's unique name.
    struct Include {
        clang::SourceLocation where;
        std::string name;
    };
    const std::multimap<std::string, Include>& includes() const { return includes_; }
    // All are there.
    void finish(const clang::ASTContext& context);

    // All of the declaration or member whose tree covers this range: with what stands ahead of it
    // (attributes, extern "C", template <>) and the ';' behind. Empty: it has no text.
    Span around(clang::SourceRange range) const;
    // The token at this place; `otherwise` if there is none.
    unsigned find(clang::SourceLocation place, unsigned otherwise) const;
    const Token& at(unsigned index) const { return all_[index]; }
    std::string spelling(unsigned index) const;
    // As #line has it: the file and line that the program wrote.
    std::string line_directive(unsigned index, const std::string& main_path,
                               const std::string& main_name) const;

    struct Change {
        Span span;
        std::string text;  // in its place
    };
    // `changes` do not overlap. `ahead`: what is written on lines of its own ahead of a token.
    std::string write(Span span, std::vector<Change> changes,
                      const std::map<unsigned, std::string>& ahead) const;

private:
    struct Macro {  // one of CUDA's that a token comes out of
        clang::SourceLocation use;
        std::string name;
        bool argument = false;  // the token is the program's own, in the macro's parentheses
    };

    Macro cuda_macro(clang::SourceLocation place) const;
    std::string inner_gap(const Token& before, const Token& after) const;
    std::string gap(const Token& before, const Token& after) const;
    const clang::SourceManager& sources() const;

    const clang::ASTContext* context_ = nullptr;
    std::vector<Token> all_;
    std::multimap<std::string, Include> includes_;
    llvm::DenseMap<clang::SourceLocation, unsigned> index_;
};

}  // namespace smt::rewriter::source
