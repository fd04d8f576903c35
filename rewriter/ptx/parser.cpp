// The module: its head, and the declarations one after the other.
#include "rewriter/ptx/parser.h"

#include <fmt/format.h>

#include <charconv>

#include "rewriter/ptx/parsing.h"

namespace smt::ptx {

namespace {

bool parse_version(Cursor& cursor, Module* module) {
    if (!cursor.at_word("version")) return cursor.fail_expected(".version, with which a module begins");
    cursor.take();
    const Token token = cursor.peek();
    if (!cursor.at(Token::Kind::kDecimal)) return cursor.fail_expected("a version such as 9.0");
    cursor.take();
    const char* end = token.text.data() + token.text.size();
    auto [dot, error] = std::from_chars(token.text.data(), end, module->version_major);
    if (error != std::errc() || dot == end || *dot != '.')
        return cursor.fail(token, "expected a version such as 9.0");
    auto [rest, minor_error] = std::from_chars(dot + 1, end, module->version_minor);
    if (minor_error != std::errc() || rest != end)
        return cursor.fail(token, "expected a version such as 9.0");
    return true;
}

bool parse_target(Cursor& cursor, Module* module) {
    do {
        if (!cursor.expect_identifier(&module->target.emplace_back(), "a target such as sm_90")) return false;
    } while (cursor.accept_sign(","));
    return true;
}

bool parse_address_size(Cursor& cursor, Module* module) {
    uint64_t size = 0;
    const Token token = cursor.peek();
    if (!parse_count(cursor, 64, "an address size", &size)) return false;
    if (size != 32 && size != 64) return cursor.fail(token, "an address size is 32 or 64");
    module->address_size = static_cast<int>(size);
    return true;
}

bool parse_head(Cursor& cursor, Module* module) {
    if (!parse_version(cursor, module)) return false;
    if (!cursor.accept_word("target")) return cursor.fail_expected(".target after .version");
    if (!parse_target(cursor, module)) return false;
    module->address_size = 32;  // unless it says otherwise
    return !cursor.accept_word("address_size") || parse_address_size(cursor, module);
}

// .file 1 "name", 1234, 56
bool parse_file(Cursor& cursor, File* file) {
    uint64_t value = 0;
    if (!parse_count(cursor, 0xffffffff, "a file's number", &value)) return false;
    file->index = static_cast<uint32_t>(value);
    if (!cursor.expect_string(&file->name, "a file's name")) return false;
    for (auto* number : {&file->timestamp, &file->bytes}) {
        if (!cursor.accept_sign(",")) return true;
        if (!parse_count(cursor, ~0ull, "a number", &value)) return false;
        *number = value;
    }
    return true;
}

bool parse_section(Cursor& cursor, Section* section) {
    if (!cursor.at(Token::Kind::kWord)) return cursor.fail_expected("a section's name");
    section->name = "." + std::string(cursor.take().text);
    const Token open = cursor.peek();
    if (!cursor.expect_sign("{", "after the section's name")) return false;
    while (!cursor.at_sign("}")) {
        if (cursor.done()) return cursor.fail(open, "this '{' is not closed");
        cursor.take();
    }
    section->text = cursor.between(open, cursor.take());
    return true;
}

bool parse_alias(Cursor& cursor, Alias* alias) {
    return cursor.expect_identifier(&alias->name, "a name after .alias") &&
           cursor.expect_sign(",", "after the alias") &&
           cursor.expect_identifier(&alias->target, "the function that it is") &&
           cursor.expect_sign(";", "after .alias");
}

std::optional<Linkage> linkage_of(std::string_view word) {
    if (word == "extern") return Linkage::kExtern;
    if (word == "visible") return Linkage::kVisible;
    if (word == "weak") return Linkage::kWeak;
    if (word == "common") return Linkage::kCommon;
    return std::nullopt;
}

template <typename Node, typename Parse>
bool parse_into(Module* module, const Token& token, Parse&& parse) {
    Node node;
    place(node, token);
    if (!parse(&node)) return false;
    module->declarations.emplace_back(std::move(node));
    return true;
}

bool parse_linked(Parsing& parsing, Module* module) {
    Cursor& cursor = parsing.cursor;
    Linkage linkage = Linkage::kInternal;
    if (auto given = linkage_of(cursor.peek().text)) {
        linkage = *given;
        cursor.take();
    }
    if (cursor.at_word("func") || cursor.at_word("entry"))
        return parse_into<Function>(module, cursor.peek(), [&](Function* function) {
            return parse_function(parsing, linkage, function);
        });
    if (!at_space(cursor)) return cursor.fail_expected("a function or a variable");
    std::vector<Variable> variables;
    if (!parse_variables(parsing, linkage, &variables)) return false;
    for (Variable& variable : variables) module->declarations.emplace_back(std::move(variable));
    return true;
}

bool parse_declaration(Parsing& parsing, Module* module) {
    Cursor& cursor = parsing.cursor;
    const Token token = cursor.peek();
    if (token.kind != Token::Kind::kWord) return cursor.fail_expected("a declaration");
    if (cursor.accept_word("file"))
        return parse_into<File>(module, token, [&](File* file) { return parse_file(cursor, file); });
    if (cursor.accept_word("section"))
        return parse_into<Section>(module, token,
                                   [&](Section* section) { return parse_section(cursor, section); });
    if (cursor.accept_word("alias"))
        return parse_into<Alias>(module, token, [&](Alias* alias) {
            parsing.scopes.declare(std::string(cursor.peek().text), Scopes::Kind::kSymbol);
            return parse_alias(cursor, alias);
        });
    if (cursor.accept_word("pragma"))
        return parse_into<Pragma>(module, token,
                                  [&](Pragma* pragma) { return parse_pragma(parsing, &pragma->texts); });
    if (linkage_of(token.text) || token.text == "func" || token.text == "entry" || at_space(cursor))
        return parse_linked(parsing, module);
    return cursor.fail(token, fmt::format("unknown directive {}", in_words(token)));
}

}  // namespace

std::string to_string(const Diagnostic& diagnostic) {
    return fmt::format("line {}, column {}: {}", diagnostic.line, diagnostic.column, diagnostic.message);
}

std::variant<Module, Diagnostic> parse(std::string_view text) {
    while (text.ends_with('\0')) text.remove_suffix(1);
    auto tokens = tokenize(text);
    if (auto* problem = std::get_if<Diagnostic>(&tokens)) return *problem;
    Parsing parsing{Cursor(text, std::get<std::vector<Token>>(std::move(tokens))), {}};
    Module module;
    parsing.scopes.enter();
    bool good = parse_head(parsing.cursor, &module);
    while (good && !parsing.cursor.done()) good = parse_declaration(parsing, &module);
    if (!good) return *parsing.cursor.failure();
    return module;
}

}  // namespace smt::ptx
