#include "rewriter/ptx/cursor.h"

#include <fmt/format.h>

namespace smt::ptx {

namespace {

constexpr size_t kMostShown = 60;  // of a token, in a message

}  // namespace

std::string in_words(const Token& token) {
    std::string_view shown = token.text.substr(0, kMostShown);
    const char* more = shown.size() < token.text.size() ? "..." : "";
    switch (token.kind) {
        case Token::Kind::kEnd:
            return "the end of the text";
        case Token::Kind::kWord:
            return fmt::format("'.{}{}'", shown, more);
        case Token::Kind::kString:
            return fmt::format("\"{}{}\"", shown, more);
        default:
            return fmt::format("'{}{}'", shown, more);
    }
}

bool Cursor::fail(const Token& token, std::string message) {
    if (failure_) return false;
    if (!subject_.empty()) message = subject_ + ": " + message;
    failure_ = Diagnostic{token.line, token.column, std::move(message)};
    return false;
}

bool Cursor::fail_expected(std::string_view what) {
    return fail(peek(), fmt::format("expected {}, not {}", what, in_words(peek())));
}

bool Cursor::expect_sign(std::string_view sign, std::string_view where) {
    if (accept_sign(sign)) return true;
    return fail_expected(fmt::format("'{}'{}{}", sign, where.empty() ? "" : " ", where));
}

bool Cursor::expect_identifier(std::string* name, std::string_view what) {
    if (!at(Token::Kind::kIdentifier)) return fail_expected(what);
    *name = take().text;
    return true;
}

bool Cursor::expect_string(std::string* text, std::string_view what) {
    if (!at(Token::Kind::kString)) return fail_expected(what);
    *text = take().text;
    return true;
}

std::string_view Cursor::between(const Token& from, const Token& to) const {
    size_t end = to.end - to.text.size() - (to.kind == Token::Kind::kWord ? 1 : 0);
    return text_.substr(from.end, end - from.end);
}

}  // namespace smt::ptx
