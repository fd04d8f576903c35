#include <fmt/format.h>

#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/printing.h"

namespace smt::ptx {

namespace {

void print_word(std::string& out, const Instruction& instruction, Modifier modifier) {
    const Shape& shape = instruction.shape;
    if (modifier != Modifier::kShape) {
        out += fmt::format(".{}", name(modifier));
    } else {
        out += fmt::format(".m{}n{}", shape.m, shape.n);
        if (shape.k) out += fmt::format("k{}", shape.k);
    }
}

void print_words(std::string& out, const Instruction& instruction) {
    size_t count = instruction.modifiers.size() + instruction.types.size();
    size_t modifier = 0, type = 0;
    for (size_t i = 0; i < count; ++i) {
        bool types_last = instruction.type_places == 0;
        bool wants_type =
            types_last ? modifier == instruction.modifiers.size() : instruction.type_places >> i & 1;
        bool is_type =
            (wants_type && type < instruction.types.size()) || modifier == instruction.modifiers.size();
        if (is_type)
            out += fmt::format(".{}", name(instruction.types[type++]));
        else
            print_word(out, instruction, instruction.modifiers[modifier++]);
    }
}

void print_call(std::string& out, const Instruction& instruction) {
    const char* separator = " ";
    for (const Operand& operand : instruction.operands) {
        if (operand.kind == Operand::Kind::kList && operand.elements.empty()) continue;
        out += separator;
        print_operand(out, operand);
        separator = ", ";
    }
}

void indent(std::string& out, int depth) { out.append(static_cast<size_t>(depth), '\t'); }

struct StatementPrinter {
    std::string& out;
    int depth;

    void operator()(const Instruction& instruction) const {
        indent(out, depth);
        print_instruction(out, instruction);
        out += ";\n";
    }
    void operator()(const Label& label) const { out += label.name + ":\n"; }
    void operator()(const Variable& variable) const {
        indent(out, depth);
        print_variable(out, variable);
        out += ";\n";
    }
    void operator()(const Scope& scope) const {
        indent(out, depth);
        print_scope(out, scope, depth);
    }
    void operator()(const Targets& targets) const {
        out += fmt::format("{}: {}", targets.name, targets.calls ? ".calltargets" : ".branchtargets");
        for (size_t i = 0; i < targets.targets.size(); ++i)
            out += fmt::format("{}{}", i ? ", " : " ", targets.targets[i]);
        out += ";\n";
    }
    void operator()(const Prototype& prototype) const {
        out += prototype.name + ": .callprototype ";
        if (!prototype.results.empty()) print_parameters(out, prototype.results, " ");
        out += " _ ";
        if (!prototype.parameters.empty()) print_parameters(out, prototype.parameters, " ");
        print_directives(out, prototype.directives);
        out += ";\n";
    }
    void operator()(const Location& location) const {
        indent(out, depth);
        out += fmt::format(".loc {} {} {}", location.file, location.source_line, location.source_column);
        if (!location.function_name.empty()) {
            out += ", function_name " + location.function_name;
            print_offset(out, location.function_offset);
        }
        if (location.at_file || location.at_line || location.at_column)
            out +=
                fmt::format(", inlined_at {} {} {}", location.at_file, location.at_line, location.at_column);
        out += '\n';
    }
    void operator()(const Pragma& pragma) const {
        indent(out, depth);
        out += ".pragma ";
        print_texts(out, pragma.texts);
        out += ";\n";
    }
};

}  // namespace

void print_texts(std::string& out, const std::vector<std::string>& texts) {
    for (size_t i = 0; i < texts.size(); ++i) out += fmt::format("{}\"{}\"", i ? ", " : "", texts[i]);
}

void print_instruction(std::string& out, const Instruction& instruction) {
    if (instruction.guard)
        out += fmt::format("@{}{} ", instruction.guard->negated ? "!" : "", instruction.guard->name);
    out += name(instruction.opcode);
    print_words(out, instruction);
    if (instruction.opcode == Opcode::kCall) return print_call(out, instruction);
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
        out += i ? ", " : " ";
        print_operand(out, instruction.operands[i]);
    }
}

std::string print(const Instruction& instruction) {
    std::string out;
    print_instruction(out, instruction);
    return out;
}

void print_scope(std::string& out, const Scope& scope, int depth) {
    out += "{\n";
    for (const Statement& statement : scope.statements)
        std::visit(StatementPrinter{out, depth + 1}, static_cast<const Statement::variant&>(statement));
    indent(out, depth);
    out += "}\n";
}

}  // namespace smt::ptx
