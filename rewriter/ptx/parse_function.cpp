#include <fmt/format.h>

#include "rewriter/ptx/parsing.h"

namespace smt::ptx {

namespace {

struct DirectiveRow {
    std::string_view word;
    Directive::Kind kind;
    size_t fewest, most;  // values
};

constexpr DirectiveRow kDirectives[] = {
    {"maxntid", Directive::Kind::kMaxntid, 1, 3},
    {"reqntid", Directive::Kind::kReqntid, 1, 3},
    {"minnctapersm", Directive::Kind::kMinnctapersm, 1, 1},
    {"maxnctapersm", Directive::Kind::kMaxnctapersm, 1, 1},
    {"maxnreg", Directive::Kind::kMaxnreg, 1, 1},
    {"noreturn", Directive::Kind::kNoreturn, 0, 0},
    {"explicitcluster", Directive::Kind::kExplicitcluster, 0, 0},
    {"reqnctapercluster", Directive::Kind::kReqnctapercluster, 1, 3},
    {"maxclusterrank", Directive::Kind::kMaxclusterrank, 1, 1},
    {"blocksareclusters", Directive::Kind::kBlocksareclusters, 0, 0},
    {"abi_preserve", Directive::Kind::kAbiPreserve, 1, 1},
    {"abi_preserve_control", Directive::Kind::kAbiPreserveControl, 1, 1},
    {"pragma", Directive::Kind::kPragma, 0, 0},
};

constexpr uint64_t kMostValue = 0xffffffff;

const DirectiveRow* directive_at(const Cursor& cursor) {
    for (const DirectiveRow& row : kDirectives)
        if (cursor.at_word(row.word)) return &row;
    return nullptr;
}

bool parse_values(Cursor& cursor, const DirectiveRow& row, std::vector<uint64_t>* values) {
    while (values->size() < row.most) {
        if (!values->empty() && !cursor.accept_sign(",")) return true;
        uint64_t value = 0;
        if (!parse_count(cursor, kMostValue, fmt::format("the value of .{}", row.word), &value)) return false;
        values->push_back(value);
    }
    return true;
}

// What may stand between .func and the name.
bool parse_before_name(Parsing& parsing, Function* function) {
    Cursor& cursor = parsing.cursor;
    while (cursor.accept_word("attribute"))
        if (!parse_attributes(parsing, &function->attributes)) return false;
    if (!parse_directives(parsing, &function->directives)) return false;
    return !cursor.at_sign("(") || parse_parameters(parsing, &function->results);
}

bool parse_function_body(Parsing& parsing, Function* function) {
    if (!parse_scope(parsing, &function->body.emplace())) return false;
    if (const Token* missing = parsing.scopes.missing_label())
        return parsing.cursor.fail(*missing, fmt::format("there is no label {}", in_words(*missing)));
    return true;
}

}  // namespace

bool parse_parameters(Parsing& parsing, std::vector<Variable>* parameters) {
    Cursor& cursor = parsing.cursor;
    if (!cursor.expect_sign("(", "")) return false;
    if (cursor.accept_sign(")")) return true;
    do {
        if (!parse_parameter(parsing, &parameters->emplace_back())) return false;
    } while (cursor.accept_sign(","));
    return cursor.expect_sign(")", "after the parameters");
}

bool parse_directives(Parsing& parsing, std::vector<Directive>* directives) {
    Cursor& cursor = parsing.cursor;
    while (const DirectiveRow* row = directive_at(cursor)) {
        Directive& directive = directives->emplace_back();
        place(directive, cursor.take());
        directive.kind = row->kind;
        bool good = row->kind == Directive::Kind::kPragma ? parse_pragma(parsing, &directive.texts)
                                                          : parse_values(cursor, *row, &directive.values);
        if (!good) return false;
    }
    return true;
}

bool parse_function(Parsing& parsing, Linkage linkage, Function* function) {
    Cursor& cursor = parsing.cursor;
    place(*function, cursor.peek());
    function->linkage = linkage;
    function->kernel = cursor.take().text == "entry";
    parsing.scopes.enter();
    if (!parse_before_name(parsing, function)) return false;
    if (!cursor.expect_identifier(&function->name, "the function's name")) return false;
    parsing.scopes.declare_outside(function->name, Scopes::Kind::kSymbol);
    if (cursor.at_sign("(") && !parse_parameters(parsing, &function->parameters)) return false;
    if (!parse_directives(parsing, &function->directives)) return false;
    if (cursor.at_sign("{")) {
        if (!parse_function_body(parsing, function)) return false;
    } else if (!cursor.expect_sign(";", "or a body after the function's head")) {
        return false;
    }
    parsing.scopes.leave();
    return true;
}

}  // namespace smt::ptx
