// A print parses to the tree it was made from; and every word the tables have is in some case.
#include <catch2/catch.hpp>
#include <set>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "tests/ptx/files.h"

namespace smt::ptx {
namespace {

const auto kCases = files_in(SMT_PTX_SYNTAX_FOLDER);

Module parsed_text(const std::string& text) {
    auto result = parse(text);
    if (auto* problem = std::get_if<Diagnostic>(&result)) FAIL(to_string(*problem) << "\n" << text);
    return std::get<Module>(std::move(result));
}

Function& first_kernel(Module& module) {
    for (Declaration& declaration : module.declarations)
        if (auto* function = std::get_if<Function>(&declaration); function && function->kernel)
            return *function;
    FAIL("no kernel");
    std::abort();
}

// The words that the cases use.
struct Used {
    std::set<Opcode> opcodes;
    std::set<Modifier> modifiers;
    std::set<Type> types;
    std::set<Special> specials;

    void add(const Operand& operand) {
        if (operand.kind == Operand::Kind::kSpecial) specials.insert(operand.special);
        for (const Operand& element : operand.elements) add(element);
    }
    void add(const Scope& scope) {
        for (const Statement& statement : scope.statements) {
            if (auto* inner = std::get_if<Scope>(&statement)) add(*inner);
            if (auto* instruction = std::get_if<Instruction>(&statement)) add(*instruction);
            if (auto* variable = std::get_if<Variable>(&statement)) types.insert(variable->type);
        }
    }
    void add(const Instruction& instruction) {
        opcodes.insert(instruction.opcode);
        modifiers.insert(instruction.modifiers.begin(), instruction.modifiers.end());
        types.insert(instruction.types.begin(), instruction.types.end());
        for (const Operand& operand : instruction.operands) add(operand);
    }
};

Used used_in_files() {
    Used used;
    for (const auto& path : kCases)
        for (const Declaration& declaration : parsed_text(read_text(path)).declarations) {
            if (auto* function = std::get_if<Function>(&declaration); function && function->body)
                used.add(*function->body);
            if (auto* variable = std::get_if<Variable>(&declaration)) used.types.insert(variable->type);
        }
    return used;
}

TEST_CASE("a print of every case parses to the same tree", "[ptx]") {
    REQUIRE(kCases.size() >= 10);
    for (const auto& path : kCases) {
        INFO(path);
        Module module = parsed_text(read_text(path));
        std::string text = print(module);
        CHECK(parsed_text(text) == module);
        CHECK(print(parsed_text(text)) == text);
    }
}

TEST_CASE("trees that say different things are not equal", "[ptx]") {
    const std::string text =
        ".version 9.0 .target sm_90 .address_size 64\n.entry k() { .reg .b32 %r<4>; { add.s32 %r1, %r2, 5; } "
        "}";
    const Module module = parsed_text(text);
    Module changed = module;
    auto& scope = std::get<Scope>(first_kernel(changed).body->statements[1]);
    auto& add = std::get<Instruction>(scope.statements[0]);
    CHECK(changed == module);
    add.line = 77;
    CHECK(changed == module);
    add.operands[2].bits = 6;
    CHECK_FALSE(changed == module);
    add.operands[2].bits = 5;
    add.modifiers.push_back(Modifier::kSat);
    CHECK_FALSE(changed == module);
    CHECK(parsed_text(print(changed)) == changed);
    CHECK(print(add) == "add.sat.s32 %r1, %r2, 5");
}

TEST_CASE("an instruction made by hand prints its types last", "[ptx]") {
    Instruction instruction;
    instruction.opcode = Opcode::kBar;
    instruction.modifiers = {Modifier::kRed, Modifier::kPopc};
    instruction.types = {Type::kU32};
    CHECK(print(instruction) == "bar.red.popc.u32");
    instruction.guard = Guard{"%p", true};
    instruction.modifiers = {Modifier::kShape};
    instruction.shape = {8, 8, 0};
    CHECK(print(instruction) == "@!%p bar.m8n8.u32");
}

TEST_CASE("places of types that make no sense still print every word once", "[ptx]") {
    Instruction instruction;
    instruction.opcode = Opcode::kAdd;
    instruction.modifiers = {Modifier::kSat};
    instruction.types = {Type::kS32};
    instruction.type_places = 0xff;
    CHECK(print(instruction) == "add.s32.sat");
}

TEST_CASE("the opcode table names known modifiers only", "[ptx]") {
    CHECK(unknown_in_opcode_list() == "");
    for (auto text : {"m.n.k.", "%pm", "%envreg", "%pm_64", "", "add.s32"}) {
        CHECK((!find_opcode(text) && !find_type(text) && !find_special(text)));
    }
}

TEST_CASE("every opcode, modifier, type and special register is in a case", "[ptx]") {
    const Used used = used_in_files();
    std::string unused;
#define SMT_PTX_OPCODE(id, name, fewest, most, modifiers) \
    if (!used.opcodes.contains(Opcode::id)) unused += name " ";
#include "rewriter/ptx/opcodes.def"
#undef SMT_PTX_OPCODE
#define SMT_PTX_TYPE(id, name, bits) \
    if (!used.types.contains(Type::id)) unused += "." name " ";
#include "rewriter/ptx/types.def"
#undef SMT_PTX_TYPE
#define SMT_PTX_SPECIAL(id, name) \
    if (!used.specials.contains(Special::id)) unused += name " ";
#include "rewriter/ptx/special_registers.def"
#undef SMT_PTX_SPECIAL
#define SMT_PTX_MODIFIER(id, name) \
    if (!used.modifiers.contains(Modifier::id)) unused += "." name " ";
#include "rewriter/ptx/modifiers.def"
#undef SMT_PTX_MODIFIER
    CHECK(unused == "");
}

}  // namespace
}  // namespace smt::ptx
