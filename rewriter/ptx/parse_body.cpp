#include <fmt/format.h>

#include "rewriter/ptx/parsing.h"

namespace smt::ptx {

namespace {

constexpr size_t kDeepestScope = 200;  // scopes in scopes
constexpr uint64_t kMostLine = 0xffffffff;

bool declare_label(Parsing& parsing, const Token& token) {
    if (parsing.scopes.declare(std::string(token.text), Scopes::Kind::kLabel)) return true;
    return parsing.cursor.fail(token, fmt::format("{} is declared twice", in_words(token)));
}

bool parse_targets(Parsing& parsing, const Token& label, bool calls, Targets* targets) {
    Cursor& cursor = parsing.cursor;
    place(*targets, label);
    targets->name = label.text;
    targets->calls = calls;
    cursor.take();
    do {
        const Token token = cursor.peek();
        std::string target;
        if (!cursor.expect_identifier(&target, calls ? "a function" : "a label")) return false;
        if (!calls) parsing.scopes.use_label(token);
        targets->targets.push_back(std::move(target));
    } while (cursor.accept_sign(","));
    return cursor.expect_sign(";", "after the targets");
}

// (results) _ (parameters) directives;
bool parse_prototype(Parsing& parsing, const Token& label, Prototype* prototype) {
    Cursor& cursor = parsing.cursor;
    place(*prototype, label);
    prototype->name = label.text;
    cursor.take();
    parsing.scopes.enter();
    if (cursor.at_sign("(") && !parse_parameters(parsing, &prototype->results)) return false;
    std::string ignored;
    if (!cursor.expect_identifier(&ignored, "'_' in the prototype")) return false;
    if (cursor.at_sign("(") && !parse_parameters(parsing, &prototype->parameters)) return false;
    parsing.scopes.leave();
    return parse_directives(parsing, &prototype->directives) &&
           cursor.expect_sign(";", "after the prototype");
}

bool parse_labelled(Parsing& parsing, std::vector<Statement>* statements) {
    Cursor& cursor = parsing.cursor;
    const Token token = cursor.take();
    cursor.take();
    if (!declare_label(parsing, token)) return false;
    bool branches = cursor.at_word("branchtargets");
    if (branches || cursor.at_word("calltargets")) {
        Targets targets;
        if (!parse_targets(parsing, token, !branches, &targets)) return false;
        statements->emplace_back(std::move(targets));
    } else if (cursor.at_word("callprototype")) {
        Prototype prototype;
        if (!parse_prototype(parsing, token, &prototype)) return false;
        statements->emplace_back(std::move(prototype));
    } else {
        Label label;
        place(label, token);
        label.name = token.text;
        statements->emplace_back(std::move(label));
    }
    return true;
}

bool parse_number(Cursor& cursor, uint32_t* number) {
    uint64_t value = 0;
    if (!parse_count(cursor, kMostLine, "a number", &value)) return false;
    *number = static_cast<uint32_t>(value);
    return true;
}

// .loc file line column [, function_name label [+ offset], inlined_at file line column]
bool parse_location(Parsing& parsing, Location* location) {
    Cursor& cursor = parsing.cursor;
    place(*location, cursor.take());
    if (!parse_number(cursor, &location->file) || !parse_number(cursor, &location->source_line) ||
        !parse_number(cursor, &location->source_column))
        return false;
    while (cursor.accept_sign(",")) {
        if (cursor.accept_identifier("function_name")) {
            if (!cursor.expect_identifier(&location->function_name, "a label") ||
                !parse_offset(cursor, &location->function_offset))
                return false;
        } else if (cursor.accept_identifier("inlined_at")) {
            if (!parse_number(cursor, &location->at_file) || !parse_number(cursor, &location->at_line) ||
                !parse_number(cursor, &location->at_column))
                return false;
        } else {
            return cursor.fail_expected("function_name or inlined_at");
        }
    }
    return true;
}

template <typename Node>
bool parse_into(Parsing& parsing, bool (*parse)(Parsing&, Node*), std::vector<Statement>* statements) {
    Node node;
    if (!parse(parsing, &node)) return false;
    statements->emplace_back(std::move(node));
    return true;
}

bool parse_directive(Parsing& parsing, std::vector<Statement>* statements) {
    Cursor& cursor = parsing.cursor;
    if (cursor.at_word("loc")) return parse_into<Location>(parsing, parse_location, statements);
    if (cursor.at_word("pragma")) {
        Pragma pragma;
        place(pragma, cursor.take());
        if (!parse_pragma(parsing, &pragma.texts)) return false;
        statements->emplace_back(std::move(pragma));
        return true;
    }
    if (!at_space(cursor))
        return cursor.fail(cursor.peek(), fmt::format("unknown directive {}", in_words(cursor.peek())));
    std::vector<Variable> variables;
    if (!parse_variables(parsing, Linkage::kInternal, &variables)) return false;
    for (Variable& variable : variables) statements->emplace_back(std::move(variable));
    return true;
}

bool parse_statement(Parsing& parsing, std::vector<Statement>* statements) {
    Cursor& cursor = parsing.cursor;
    if (cursor.at_sign("{")) {
        parsing.scopes.enter();
        if (!parse_into<Scope>(parsing, parse_scope, statements)) return false;
        parsing.scopes.leave();
        return true;
    }
    if (cursor.at(Token::Kind::kWord)) return parse_directive(parsing, statements);
    if (cursor.at(Token::Kind::kIdentifier) && cursor.at_sign(":", 1))
        return parse_labelled(parsing, statements);
    if (cursor.at(Token::Kind::kIdentifier) || cursor.at_sign("@"))
        return parse_into<Instruction>(parsing, parse_instruction, statements);
    return cursor.fail_expected("an instruction, a directive, a label or '}'");
}

}  // namespace

bool parse_pragma(Parsing& parsing, std::vector<std::string>* texts) {
    Cursor& cursor = parsing.cursor;
    do {
        if (!cursor.expect_string(&texts->emplace_back(), "a string after .pragma")) return false;
    } while (cursor.accept_sign(","));
    return cursor.expect_sign(";", "after .pragma");
}

// The caller has entered the scope, because parameters belong to it.
bool parse_scope(Parsing& parsing, Scope* scope) {
    Cursor& cursor = parsing.cursor;
    const Token open = cursor.take();
    place(*scope, open);
    if (parsing.scopes.depth() > kDeepestScope) return cursor.fail(open, "scopes are nested too deeply");
    while (!cursor.accept_sign("}")) {
        if (cursor.done()) return cursor.fail(open, "this '{' is not closed");
        if (!parse_statement(parsing, &scope->statements)) return false;
    }
    return true;
}

}  // namespace smt::ptx
