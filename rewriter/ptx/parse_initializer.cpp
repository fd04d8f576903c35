#include <fmt/format.h>

#include "rewriter/ptx/parsing.h"

namespace smt::ptx {

namespace {

constexpr int kDeepestList = 64;  // lists in lists

bool parse_value(Parsing& parsing, int depth, Initializer* value);

// name + 4, generic(name) + 4; the names are not looked up, since a table may name a function that comes
// later
bool parse_symbol(Cursor& cursor, Initializer* value) {
    value->kind = Initializer::Kind::kSymbol;
    if (cursor.at_sign("(", 1) && cursor.accept_identifier("generic")) {
        cursor.take();
        value->generic = true;
        if (!cursor.expect_identifier(&value->name, "a variable or function") ||
            !cursor.expect_sign(")", "after it"))
            return false;
    } else if (!cursor.expect_identifier(&value->name, "a variable or function")) {
        return false;
    }
    return parse_offset(cursor, &value->offset);
}

// 0xFF00(name + 4): these bits of the address
bool parse_masked(Cursor& cursor, Initializer* value) {
    Constant mask;
    if (!parse_constant_term(cursor, &mask)) return false;
    value->mask = mask.bits;
    if (mask.bits == 0) return cursor.fail(cursor.peek(), "a mask of 0 selects nothing");
    return cursor.expect_sign("(", "after the mask") && parse_symbol(cursor, value) &&
           cursor.expect_sign(")", "after what is masked");
}

bool parse_list(Parsing& parsing, int depth, Initializer* list) {
    Cursor& cursor = parsing.cursor;
    cursor.take();
    list->kind = Initializer::Kind::kList;
    if (depth == kDeepestList) return cursor.fail(cursor.peek(), "this initialiser is nested too deeply");
    if (cursor.accept_sign("}")) return true;
    do {
        Initializer& element = list->elements.emplace_back();
        if (cursor.at(Token::Kind::kIdentifier) && cursor.at_sign("=", 1)) {
            element.field = cursor.take().text;
            cursor.take();
        }
        if (!parse_value(parsing, depth + 1, &element)) return false;
    } while (cursor.accept_sign(","));
    return cursor.expect_sign("}", "at the end of the list");
}

bool parse_value(Parsing& parsing, int depth, Initializer* value) {
    Cursor& cursor = parsing.cursor;
    place(*value, cursor.peek());
    if (cursor.at_sign("{")) return parse_list(parsing, depth, value);
    bool name = cursor.at(Token::Kind::kIdentifier) && cursor.peek().text != "WARP_SZ";
    if (name && !value->field.empty()) {
        value->kind = Initializer::Kind::kWord;
        value->name = cursor.take().text;
        return true;
    }
    if (name) return parse_symbol(cursor, value);
    if (cursor.at(Token::Kind::kInteger) && cursor.at_sign("(", 1)) return parse_masked(cursor, value);
    if (!at_constant(cursor)) return cursor.fail_expected("a value");
    Constant constant;
    if (!parse_constant(cursor, &constant)) return false;
    value->kind = constant.is_integer()                       ? Initializer::Kind::kInteger
                  : constant.kind == Constant::Kind::kFloat32 ? Initializer::Kind::kFloat32
                                                              : Initializer::Kind::kFloat64;
    value->bits = constant.bits;
    return true;
}

}  // namespace

bool parse_initializer(Parsing& parsing, Initializer* initializer) {
    return parse_value(parsing, 0, initializer);
}

}  // namespace smt::ptx
