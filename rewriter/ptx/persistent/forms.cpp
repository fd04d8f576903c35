#include "rewriter/ptx/persistent/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/persistent/forms.gen.h"
#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::persistent {

namespace {

constexpr const char* kMarker = "smt_body";
constexpr std::array kNames = {"smt_form_worker",         "smt_form_free",         "smt_form_warp",
                               "smt_form_shared",         "smt_form_single",       "smt_form_single_shared",
                               "smt_form_worker_checked", "smt_form_free_checked", "smt_form_single_checked"};

// %r12 to %smt_r12, $L__BB0_1 to $smt_L__BB0_1. Names that are apart already stay.
void set_apart(std::string& name) {
    if ((name.starts_with('%') || name.starts_with('$')) && name.compare(1, 4, "smt_") != 0)
        name.insert(1, "smt_");
}

void rename(Instruction& instruction, const std::string& parameter) {
    if (instruction.guard) set_apart(instruction.guard->name);
    for (Operand& whole : instruction.operands) {
        each_operand(whole, [&](Operand& operand) {
            set_apart(operand.name);
            if (operand.name == parameter) operand.name = kLaunch;
        });
    }
}

void set_apart(Function& entry) {
    const std::string parameter = entry.parameters.front().name;
    entry.parameters.front().name = kLaunch;
    each_statement(*entry.body, [&](Statement& statement) {
        if (auto* instruction = std::get_if<Instruction>(&statement)) rename(*instruction, parameter);
        if (auto* label = std::get_if<Label>(&statement)) set_apart(label->name);
        if (auto* variable = std::get_if<Variable>(&statement)) set_apart(variable->name);
    });
}

bool is_marker(const Statement& statement) {
    auto* pragma = std::get_if<Pragma>(&statement);
    return pragma && pragma->texts.size() == 1 && pragma->texts[0] == kMarker;
}

// The others are a compiler's hints to its own assembler, which may be newer than the program's PTX.
void erase_hints(std::vector<Statement>& statements) {
    std::erase_if(statements, [](const Statement& statement) {
        return std::holds_alternative<Pragma>(statement) && !is_marker(statement);
    });
    for (Statement& statement : statements)
        if (auto* scope = std::get_if<Scope>(&statement)) erase_hints(scope->statements);
}

// Exactly one place for a body: a compiler may copy inline assembly.
bool read_form(Function&& entry, Form* form) {
    size_t found = 0;
    set_apart(entry);
    std::vector<Statement>& statements = entry.body->statements;
    erase_hints(statements);
    for (size_t i = 0; i < statements.size(); ++i) {
        auto* scope = std::get_if<Scope>(&statements[i]);
        if (!scope) continue;
        const auto marker = std::find_if(scope->statements.begin(), scope->statements.end(), is_marker);
        if (marker == scope->statements.end()) continue;
        form->behind.assign(marker + 1, scope->statements.end());
        scope->statements.erase(marker, scope->statements.end());
        form->place = i;
        ++found;
    }
    form->entry = std::move(entry);
    return found == 1;
}

Forms read() {
    Forms forms;
    auto parsed = parse(kFormsText);
    if (auto* diagnostic = std::get_if<Diagnostic>(&parsed)) {
        forms.problem = "the loop's PTX cannot be read: " + to_string(*diagnostic);
        return forms;
    }
    size_t found = 0;
    for (Declaration& declaration : std::get<Module>(parsed).declarations) {
        auto* function = std::get_if<Function>(&declaration);
        if (!function || !function->kernel) {
            if (function && function->body) erase_hints(function->body->statements);
            forms.helpers.push_back(std::move(declaration));
            continue;
        }
        for (size_t i = 0; i < kNames.size(); ++i) {
            if (function->name == kNames[i] && read_form(std::move(*function), &forms.forms[i])) ++found;
        }
    }
    if (found != kNames.size())
        forms.problem = fmt::format("the loop's PTX has {} forms with one place for a body, not {}", found,
                                    kNames.size());
    return forms;
}

}  // namespace

const char* name_of(FormKind kind) {
    return kNames[static_cast<size_t>(kind)] + std::char_traits<char>::length("smt_form_");
}

const Forms& forms() {
    static const Forms all = read();
    return all;
}

}  // namespace smt::ptx::persistent
