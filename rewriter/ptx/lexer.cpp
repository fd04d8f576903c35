#include "rewriter/ptx/lexer.h"

#include <fmt/format.h>

namespace smt::ptx {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }

constexpr std::string_view kLongSigns[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
constexpr std::string_view kSigns = "@!{}[]()<>,;:+-*/%=|&^~?";

class Lexer {
public:
    explicit Lexer(std::string_view text) : text_(text) {}

    std::variant<std::vector<Token>, Diagnostic> run() {
        tokens_.reserve(text_.size() / 4);
        while (skip_blanks() && at_ < text_.size() && take()) {
        }
        if (failure_) return *failure_;
        add(Token::Kind::kEnd, at_, at_, at_);
        return std::move(tokens_);
    }

private:
    char look(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    int column_of(size_t at) const { return static_cast<int>(at - line_begin_) + 1; }

    bool fail(size_t at, std::string message) {
        failure_ = Diagnostic{line_, column_of(at), std::move(message)};
        return false;
    }

    bool add(Token::Kind kind, size_t begin, size_t text_begin, size_t text_end) {
        tokens_.push_back(
            {kind, text_.substr(text_begin, text_end - text_begin), line_, column_of(begin), at_});
        return true;
    }

    void new_line() {
        ++line_;
        line_begin_ = at_ + 1;
    }

    bool skip_blanks() {
        for (; at_ < text_.size(); ++at_) {
            char c = text_[at_];
            if (c == '\n') {
                new_line();
            } else if ((c == '/' && look(1) == '/') || (c == '#' && at_ == line_begin_)) {
                while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
            } else if (c == '/' && look(1) == '*') {
                if (!skip_comment()) return false;
            } else if (c != ' ' && c != '\t' && c != '\r' && c != '\f' && c != '\v') {
                return true;
            }
        }
        return true;
    }

    // Stops at its last byte.
    bool skip_comment() {
        size_t close = text_.find("*/", at_ + 2);
        if (close == text_.npos) return fail(at_, "this comment has no end");
        for (; at_ < close + 1; ++at_)
            if (text_[at_] == '\n') new_line();
        return true;
    }

    bool take() {
        char c = look();
        if (is_letter(c) || c == '_' || c == '$') return take_identifier();
        if (c == '%' && is_name(look(1)) && !follows_value()) return take_identifier();
        if (c == '.' && is_name(look(1))) return take_word();
        if (is_digit(c)) return take_number();
        if (c == '"') return take_string();
        return take_sign();
    }

    // Whether a % here is the operator.
    bool follows_value() const {
        if (tokens_.empty()) return false;
        const Token& last = tokens_.back();
        return last.kind == Token::Kind::kInteger || last.kind == Token::Kind::kDecimal || last.text == ")";
    }

    bool take_identifier() {
        size_t begin = at_++;
        while (is_name(look())) ++at_;
        return add(Token::Kind::kIdentifier, begin, begin, at_);
    }

    bool take_word() {
        size_t begin = at_++;
        while (is_name(look()) || (look() == ':' && look(1) == ':' && is_name(look(2))))
            at_ += look() == ':' ? 2 : 1;
        return add(Token::Kind::kWord, begin, begin + 1, at_);
    }

    bool take_number() {
        size_t begin = at_;
        char marker = static_cast<char>(look(1) | 0x20);
        if (look() == '0' && (marker == 'f' || marker == 'd'))
            return take_hex_float(begin, marker == 'f' ? 8 : 16);
        if (look() == '0' && marker == 'x') {
            at_ += 2;
            while (is_hex(look())) ++at_;
            return finish_integer(begin, at_ - begin > 2);
        }
        if (look() == '0' && marker == 'b') {
            at_ += 2;
            while (look() == '0' || look() == '1') ++at_;
            return finish_integer(begin, at_ - begin > 2);
        }
        while (is_digit(look())) ++at_;
        bool decimal = false;
        if (look() == '.' && !is_letter(look(1)) && look(1) != '_') {
            decimal = true;
            ++at_;
            while (is_digit(look())) ++at_;
        }
        size_t sign = look(1) == '+' || look(1) == '-' ? 1 : 0;
        if ((look() | 0x20) == 'e' && is_digit(look(1 + sign))) {
            decimal = true;
            at_ += 1 + sign;
            while (is_digit(look())) ++at_;
        }
        if (!decimal) return finish_integer(begin, true);
        if (is_name(look())) return fail(begin, "this number does not end properly");
        return add(Token::Kind::kDecimal, begin, begin, at_);
    }

    bool take_hex_float(size_t begin, size_t digits) {
        at_ += 2;
        while (is_hex(look())) ++at_;
        if (at_ - begin != digits + 2 || is_name(look()))
            return fail(begin, fmt::format("a number that begins with {} has {} hexadecimal digits",
                                           text_.substr(begin, 2), digits));
        return add(Token::Kind::kHexFloat, begin, begin, at_);
    }

    bool finish_integer(size_t begin, bool has_digits) {
        if (look() == 'U') ++at_;
        if (!has_digits || is_name(look())) return fail(begin, "this number does not end properly");
        return add(Token::Kind::kInteger, begin, begin, at_);
    }

    // There are no escapes: a backslash is a backslash.
    bool take_string() {
        size_t begin = at_++;
        while (at_ < text_.size() && look() != '"' && look() != '\n') ++at_;
        if (look() != '"' || at_ >= text_.size()) return fail(begin, "this string has no end");
        ++at_;
        return add(Token::Kind::kString, begin, begin + 1, at_ - 1);
    }

    bool take_sign() {
        size_t begin = at_;
        for (std::string_view sign : kLongSigns) {
            if (text_.substr(at_, 2) != sign) continue;
            at_ += 2;
            return add(Token::Kind::kSign, begin, begin, at_);
        }
        char c = look();
        if (kSigns.find(c) == kSigns.npos) {
            bool printable = c > ' ' && c < 0x7f;
            return fail(begin, printable
                                   ? fmt::format("'{}' means nothing here", c)
                                   : fmt::format("a byte of value 0x{:02x} means nothing here", c & 0xff));
        }
        ++at_;
        return add(Token::Kind::kSign, begin, begin, at_);
    }

    std::string_view text_;
    size_t at_ = 0;
    size_t line_begin_ = 0;
    int line_ = 1;
    std::vector<Token> tokens_;
    std::optional<Diagnostic> failure_;
};

}  // namespace

std::variant<std::vector<Token>, Diagnostic> tokenize(std::string_view text) { return Lexer(text).run(); }

}  // namespace smt::ptx
