// The parser's place in the tokens, and the first thing that went wrong. Parsing functions return false once
// it has; what they were filling in is then incomplete and is dropped.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/ptx/lexer.h"

namespace smt::ptx {

class Cursor {
public:
    Cursor(std::string_view text, std::vector<Token> tokens) : text_(text), tokens_(std::move(tokens)) {}

    const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
    const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
    bool done() const { return peek().kind == Token::Kind::kEnd; }

    bool at_sign(std::string_view sign, size_t ahead = 0) const {
        return is(Token::Kind::kSign, sign, ahead);
    }
    bool at_word(std::string_view word, size_t ahead = 0) const {
        return is(Token::Kind::kWord, word, ahead);
    }
    bool at(Token::Kind kind, size_t ahead = 0) const { return peek(ahead).kind == kind; }

    bool accept_sign(std::string_view sign) { return at_sign(sign) && (take(), true); }
    bool accept_word(std::string_view word) { return at_word(word) && (take(), true); }
    bool accept_identifier(std::string_view name) {
        return is(Token::Kind::kIdentifier, name, 0) && (take(), true);
    }

    // `where`: "after the operands"; may be empty.
    bool expect_sign(std::string_view sign, std::string_view where);
    bool expect_identifier(std::string* name, std::string_view what);
    bool expect_string(std::string* text, std::string_view what);

    // Both return false. The first failure is kept.
    bool fail(const Token& token, std::string message);
    bool fail_expected(std::string_view what);  // "expected WHAT, not 'x'", at the next token

    // What is being parsed, for messages: "add.s32". Empty: nothing in particular.
    void set_subject(std::string subject) { subject_ = std::move(subject); }

    const std::optional<Diagnostic>& failure() const { return failure_; }

    // The text from behind one token to the beginning of another.
    std::string_view between(const Token& from, const Token& to) const;

private:
    bool is(Token::Kind kind, std::string_view text, size_t ahead) const {
        const Token& token = peek(ahead);
        return token.kind == kind && token.text == text;
    }

    std::string_view text_;
    std::vector<Token> tokens_;
    size_t at_ = 0;
    std::string subject_;
    std::optional<Diagnostic> failure_;
};

// "'add'", "'.s32'", "the end of the text"
std::string in_words(const Token& token);

}  // namespace smt::ptx
