#include <fmt/format.h>

#include "rewriter/ptx/parsing.h"

namespace smt::ptx {

namespace {

constexpr uint64_t kMostBytes = 1ull << 40;    // of one dimension
constexpr uint64_t kMostRegisters = 1u << 28;  // in %r<N>
constexpr uint64_t kWidestAlignment = 1u << 30;
constexpr size_t kMostDimensions = 32;
constexpr size_t kMostVariables = 1u << 16;  // in one statement

std::optional<Space> space_of(std::string_view word) {
    if (word == "reg") return Space::kRegister;
    if (word == "global") return Space::kGlobal;
    if (word == "const") return Space::kConstant;
    if (word == "local") return Space::kLocal;
    if (word == "shared") return Space::kShared;
    if (word == "param") return Space::kParameter;
    if (word == "tex") return Space::kTexture;
    return std::nullopt;
}

bool parse_alignment(Cursor& cursor, uint32_t* alignment) {
    uint64_t value = 0;
    const Token token = cursor.peek();
    if (!parse_count(cursor, kWidestAlignment, "an alignment", &value)) return false;
    if (value == 0 || (value & (value - 1)) != 0) return cursor.fail(token, "an alignment is a power of two");
    *alignment = static_cast<uint32_t>(value);
    return true;
}

// .ptr [.space] [.align N], of a kernel's parameter
bool parse_pointer(Cursor& cursor, Variable* variable) {
    variable->pointer = true;
    while (cursor.at(Token::Kind::kWord)) {
        if (auto space = space_of(cursor.peek().text)) {
            cursor.take();
            variable->pointer_space = *space;
        } else if (cursor.accept_word("align")) {
            if (!parse_alignment(cursor, &variable->pointer_alignment)) return false;
        } else {
            break;
        }
    }
    return true;
}

// What stands before the name: .align 8 .v2 .f32 .ptr ...
bool parse_declared_type(Parsing& parsing, Variable* variable) {
    Cursor& cursor = parsing.cursor;
    bool typed = false;
    while (cursor.at(Token::Kind::kWord)) {
        const Token word = cursor.take();
        if (auto type = find_type(word.text)) {
            if (typed) return cursor.fail(word, fmt::format("{} is a second type", in_words(word)));
            variable->type = *type;
            typed = true;
        } else if (word.text == "align") {
            if (!parse_alignment(cursor, &variable->alignment)) return false;
        } else if (word.text == "v2" || word.text == "v4" || word.text == "v8") {
            variable->vector = word.text[1] - '0';
        } else if (word.text == "attribute") {
            if (!parse_attributes(parsing, &variable->attributes)) return false;
        } else if (word.text == "ptr" && variable->space == Space::kParameter) {
            if (!parse_pointer(cursor, variable)) return false;
        } else {
            return cursor.fail(word, fmt::format("{} is no part of a declaration", in_words(word)));
        }
    }
    return typed || cursor.fail_expected("the type of what is declared");
}

// %r<72>, name[4][8]
bool parse_declared_name(Cursor& cursor, Variable* variable) {
    place(*variable, cursor.peek());
    if (!cursor.expect_identifier(&variable->name, "a name")) return false;
    uint64_t value = 0;
    if (cursor.accept_sign("<")) {
        if (!cursor.at(Token::Kind::kInteger)) return cursor.fail_expected("a number of registers");
        // Not an expression: its '>' would be the operator.
        Constant count;
        const Token token = cursor.peek();
        if (!parse_constant_term(cursor, &count)) return false;
        if (count.bits > kMostRegisters)
            return cursor.fail(token, fmt::format("at most {} registers in one range", kMostRegisters));
        variable->count = static_cast<uint32_t>(count.bits);
        if (!cursor.expect_sign(">", "after the number of registers")) return false;
    }
    while (cursor.accept_sign("[")) {
        if (variable->dimensions.size() == kMostDimensions)
            return cursor.fail(cursor.peek(), "too many dimensions");
        bool open = variable->dimensions.empty() && cursor.at_sign("]");
        value = 0;
        if (!open && !parse_count(cursor, kMostBytes, "a dimension", &value)) return false;
        variable->dimensions.push_back(value);
        if (!cursor.expect_sign("]", "after the dimension")) return false;
    }
    return true;
}

bool declare(Parsing& parsing, const Token& token, const Variable& variable, bool once) {
    auto kind = variable.space == Space::kRegister ? Scopes::Kind::kRegister : Scopes::Kind::kSymbol;
    bool fresh = variable.count ? parsing.scopes.declare_numbered(variable.name, *variable.count)
                                : parsing.scopes.declare(variable.name, kind);
    return fresh || !once || parsing.cursor.fail(token, fmt::format("{} is declared twice", in_words(token)));
}

bool parse_space(Cursor& cursor, Variable* variable) {
    place(*variable, cursor.peek());
    auto space = cursor.at(Token::Kind::kWord) ? space_of(cursor.peek().text) : std::nullopt;
    if (!space) return cursor.fail_expected("a state space");
    cursor.take();
    variable->space = *space;
    return true;
}

bool parse_attribute_values(Cursor& cursor, Attribute* attribute) {
    do {
        uint64_t value = 0;
        if (!parse_count(cursor, ~0ull, "an attribute's value", &value)) return false;
        attribute->values.push_back(value);
    } while (cursor.accept_sign(","));
    return cursor.expect_sign(")", "after the attribute's values");
}

}  // namespace

bool at_space(const Cursor& cursor) {
    return cursor.at(Token::Kind::kWord) && space_of(cursor.peek().text).has_value();
}

bool parse_attributes(Parsing& parsing, std::vector<Attribute>* attributes) {
    Cursor& cursor = parsing.cursor;
    if (!cursor.expect_sign("(", "after .attribute")) return false;
    do {
        if (!cursor.at(Token::Kind::kWord)) return cursor.fail_expected("an attribute");
        Attribute& attribute = attributes->emplace_back();
        attribute.name = cursor.take().text;
        if (cursor.accept_sign("(") && !parse_attribute_values(cursor, &attribute)) return false;
    } while (cursor.accept_sign(","));
    return cursor.expect_sign(")", "after the attributes");
}

bool parse_variables(Parsing& parsing, Linkage linkage, std::vector<Variable>* variables) {
    Cursor& cursor = parsing.cursor;
    Variable common;
    common.linkage = linkage;
    if (!parse_space(cursor, &common) || !parse_declared_type(parsing, &common)) return false;
    do {
        if (variables->size() == kMostVariables)
            return cursor.fail(cursor.peek(), "too many names in one statement");
        Variable variable = common;
        const Token token = cursor.peek();
        bool in_function = parsing.scopes.depth() > 1;
        if (!parse_declared_name(cursor, &variable) || !declare(parsing, token, variable, in_function))
            return false;
        if (cursor.accept_sign("=") && !parse_initializer(parsing, &variable.initializer.emplace()))
            return false;
        variables->push_back(std::move(variable));
    } while (cursor.accept_sign(","));
    return cursor.expect_sign(";", "after the declaration");
}

bool parse_parameter(Parsing& parsing, Variable* parameter) {
    if (!parse_space(parsing.cursor, parameter) || !parse_declared_type(parsing, parameter)) return false;
    const Token token = parsing.cursor.peek();
    return parse_declared_name(parsing.cursor, parameter) && declare(parsing, token, *parameter, true);
}

}  // namespace smt::ptx
