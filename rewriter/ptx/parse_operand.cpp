#include <fmt/format.h>

#include <charconv>

#include "rewriter/ptx/parsing.h"

namespace smt::ptx {

namespace {

using Kind = Operand::Kind;

constexpr size_t kMostElements = 1024;  // of a vector; tcgen05.ld.x128 takes 128
constexpr uint32_t kEnvironmentRegisters = 32;
constexpr uint32_t kPerformanceCounters = 8;

int component_of(std::string_view word) {
    if (word.size() != 1) return -1;
    switch (word[0]) {
        case 'x':
        case 'r':
            return 0;
        case 'y':
        case 'g':
            return 1;
        case 'z':
        case 'b':
            return 2;
        case 'w':
        case 'a':
            return 3;
        default:
            return -1;
    }
}

// b0, h1, b3210: bytes or half-words of a video instruction's operand
bool is_selector(std::string_view word) {
    return word.size() >= 2 && word.size() <= 5 && (word[0] == 'b' || word[0] == 'h') &&
           word.find_first_not_of("01234567", 1) == word.npos;
}

// %envreg3, %pm7 and %pm7_64
bool parse_numbered_special(std::string_view name, Operand* operand) {
    for (auto [stem, special, count] : {std::tuple("%envreg", Special::kEnvreg, kEnvironmentRegisters),
                                        std::tuple("%pm", Special::kPm, kPerformanceCounters)}) {
        std::string_view prefix = stem;
        if (!name.starts_with(prefix)) continue;
        std::string_view digits = name.substr(prefix.size());
        bool wide = special == Special::kPm && digits.ends_with("_64");
        if (wide) digits.remove_suffix(3);
        uint32_t number = 0;
        auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (error != std::errc() || end != digits.data() + digits.size() || number >= count) continue;
        operand->special = wide ? Special::kPm64 : special;
        operand->bits = number;
        return true;
    }
    return false;
}

bool resolve(Parsing& parsing, const Token& token, Operand* operand) {
    if (auto kind = parsing.scopes.find(token.text)) {
        if (*kind == Scopes::Kind::kLabel)
            return parsing.cursor.fail(token, fmt::format("{} is a label", in_words(token)));
        operand->kind = *kind == Scopes::Kind::kRegister ? Kind::kRegister : Kind::kSymbol;
        operand->name = token.text;
        return true;
    }
    operand->kind = Kind::kSpecial;
    if (auto special = find_special(token.text)) return operand->special = *special, true;
    if (parse_numbered_special(token.text, operand)) return true;
    return parsing.cursor.fail(token, fmt::format("{} is not declared", in_words(token)));
}

bool parse_component(Parsing& parsing, Operand* operand) {
    Cursor& cursor = parsing.cursor;
    if (!cursor.at(Token::Kind::kWord)) return true;
    const Token& word = cursor.take();
    operand->component = static_cast<int8_t>(component_of(word.text));
    if (operand->component >= 0) return true;
    if (operand->kind != Kind::kRegister || !is_selector(word.text))
        return cursor.fail(word, fmt::format("{} selects no part of an operand", in_words(word)));
    operand->selector = word.text;
    return true;
}

// A register, special register, symbol with an offset, or _.
bool parse_named(Parsing& parsing, Operand* operand) {
    Cursor& cursor = parsing.cursor;
    const Token token = cursor.take();
    place(*operand, token);
    if (token.text == "_") return operand->kind = Kind::kSink, true;
    if (!resolve(parsing, token, operand)) return false;
    if (operand->kind == Kind::kSymbol) return parse_offset(cursor, &operand->offset);
    return parse_component(parsing, operand);
}

bool parse_number(Parsing& parsing, Operand* operand) {
    Constant constant;
    if (!parse_constant(parsing.cursor, &constant)) return false;
    operand->kind = constant.is_integer()                       ? Kind::kInteger
                    : constant.kind == Constant::Kind::kFloat32 ? Kind::kFloat32
                                                                : Kind::kFloat64;
    operand->bits = constant.bits;
    return true;
}

bool parse_elements(Parsing& parsing, std::string_view close, std::string_view where, Operand* operand) {
    Cursor& cursor = parsing.cursor;
    if (cursor.accept_sign(close)) return true;
    do {
        if (operand->elements.size() == kMostElements) return cursor.fail(cursor.peek(), "too many elements");
        Operand element;
        place(element, cursor.peek());
        if (cursor.at(Token::Kind::kIdentifier) && cursor.peek().text != "WARP_SZ") {
            if (!parse_named(parsing, &element)) return false;
        } else if (at_constant(cursor)) {
            if (!parse_number(parsing, &element)) return false;
        } else {
            return cursor.fail_expected("a register or a number");
        }
        operand->elements.push_back(std::move(element));
    } while (cursor.accept_sign(","));
    return cursor.expect_sign(close, where);
}

bool parse_vector(Parsing& parsing, Operand* operand) {
    place(*operand, parsing.cursor.take());
    operand->kind = Kind::kVector;
    return parse_elements(parsing, "}", "at the end of the vector", operand);
}

// The offset of the first element is the address's own: [base + offset, ...].
bool parse_address(Parsing& parsing, Operand* operand) {
    Cursor& cursor = parsing.cursor;
    cursor.take();
    operand->kind = Kind::kAddress;
    do {
        Operand element;
        place(element, cursor.peek());
        if (cursor.at_sign("{")) {
            if (!parse_vector(parsing, &element)) return false;
        } else if (cursor.at(Token::Kind::kIdentifier)) {
            if (!parse_named(parsing, &element)) return false;
        } else if (at_constant(cursor)) {
            if (!parse_number(parsing, &element)) return false;
        } else {
            return cursor.fail_expected("an address");
        }
        bool first = operand->elements.empty();
        if (first && !parse_offset(cursor, &operand->offset)) return false;
        if (first && element.kind == Kind::kSymbol) std::swap(operand->offset, element.offset);
        operand->elements.push_back(std::move(element));
    } while (operand->elements.size() < kMostElements && cursor.accept_sign(","));
    if (!cursor.expect_sign("]", "at the end of the address")) return false;
    if (cursor.accept_word("unified")) operand->selector = "unified";
    return true;
}

bool parse_pair(Parsing& parsing, Operand* operand) {
    Operand pair;
    pair.line = operand->line;
    pair.column = operand->column;
    pair.kind = Kind::kPair;
    pair.elements.push_back(std::move(*operand));
    Operand second;
    if (!parsing.cursor.at(Token::Kind::kIdentifier))
        return parsing.cursor.fail_expected("a register after '|'");
    if (!parse_named(parsing, &second)) return false;
    pair.elements.push_back(std::move(second));
    *operand = std::move(pair);
    return true;
}

}  // namespace

bool parse_operand(Parsing& parsing, Operand* operand) {
    Cursor& cursor = parsing.cursor;
    place(*operand, cursor.peek());
    if (cursor.at_sign("[")) return parse_address(parsing, operand);
    if (cursor.at_sign("{")) {
        if (!parse_vector(parsing, operand)) return false;
        return !cursor.accept_sign("|") || parse_pair(parsing, operand);
    }
    bool named_next = cursor.at(Token::Kind::kIdentifier, 1) && cursor.peek(1).text != "WARP_SZ";
    if (named_next && cursor.at_sign("!"))
        cursor.take(), operand->negated = true;
    else if (named_next && cursor.at_sign("-"))
        cursor.take(), operand->minus = true;
    if (cursor.at(Token::Kind::kIdentifier) && cursor.peek().text != "WARP_SZ") {
        if (!parse_named(parsing, operand)) return false;
        return !cursor.accept_sign("|") || parse_pair(parsing, operand);
    }
    if (at_constant(cursor)) return parse_number(parsing, operand);
    return cursor.fail_expected("an operand");
}

bool parse_label_operand(Parsing& parsing, Operand* operand) {
    const Token token = parsing.cursor.peek();
    place(*operand, token);
    operand->kind = Kind::kLabel;
    if (!parsing.cursor.expect_identifier(&operand->name, "a label")) return false;
    parsing.scopes.use_label(token);
    return true;
}

bool parse_list_operand(Parsing& parsing, Operand* operand) {
    place(*operand, parsing.cursor.peek());
    operand->kind = Kind::kList;
    return parsing.cursor.expect_sign("(", "") &&
           parse_elements(parsing, ")", "at the end of the list", operand);
}

}  // namespace smt::ptx
