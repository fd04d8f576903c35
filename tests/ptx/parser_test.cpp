#include "rewriter/ptx/parser.h"

#include <catch2/catch.hpp>

namespace smt::ptx {
namespace {

constexpr const char* kHead = ".version 9.0\n.target sm_90\n.address_size 64\n";

Module parsed(const std::string& text) {
    auto result = parse(kHead + text);
    if (auto* problem = std::get_if<Diagnostic>(&result)) FAIL(to_string(*problem));
    return std::get<Module>(std::move(result));
}

// The statements of a kernel that declares some registers first, without these declarations.
std::vector<Statement> body(const std::string& text) {
    Module module = parsed(
        ".global .b32 g;\n.func f(.param .b32 x);\n.entry k(.param .b64 x) {\n"
        ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .v4 .f32 %v;\n" +
        text + "}");
    auto& statements = std::get<Function>(module.declarations.back()).body->statements;
    return {std::make_move_iterator(statements.begin() + 4), std::make_move_iterator(statements.end())};
}

Instruction instruction(const std::string& text) {
    auto statements = body(text + ";\nexit;");
    REQUIRE(statements.size() == 2);
    return std::get<Instruction>(statements[0]);
}

uint64_t constant(const std::string& text) {
    Module module = parsed(".global .b64 x = " + text + ";");
    return std::get<Variable>(module.declarations[0]).initializer->bits;
}

using Kind = Operand::Kind;

TEST_CASE("the example of the header holds", "[ptx]") {
    Instruction load = instruction("@!%p1 ld.global.v2.f32 {%r1, _}, [%d2+8]");
    CHECK(load.guard == Guard{"%p1", true});
    CHECK(load.opcode == Opcode::kLd);
    CHECK(load.modifiers == std::vector{Modifier::kGlobal, Modifier::kV2});
    CHECK(load.types == std::vector{Type::kF32});
    CHECK(load.type_places == 0);
    CHECK(load.vector_width() == 2);
    REQUIRE(load.operands.size() == 2);
    CHECK(load.operands[0].kind == Kind::kVector);
    CHECK(load.operands[0].elements[0].name == "%r1");
    CHECK(load.operands[0].elements[1].kind == Kind::kSink);
    CHECK(load.operands[1].kind == Kind::kAddress);
    CHECK(load.operands[1].offset == 8);
    CHECK(load.operands[1].elements[0].kind == Kind::kRegister);
}

TEST_CASE("lines and columns are those of the text", "[ptx]") {
    auto statements = body("add.s32 %r1, %r2,\n   %r3;\nl:  ret;");
    const auto& add = std::get<Instruction>(statements[0]);
    CHECK(add.line == 8);
    CHECK(add.column == 1);
    CHECK(add.operands[2].line == 9);
    CHECK(add.operands[2].column == 4);
    CHECK(std::get<Label>(statements[1]).line == 10);
    CHECK(std::get<Instruction>(statements[2]).column == 5);
}

TEST_CASE("names are resolved to what they name", "[ptx]") {
    auto kind = [](const std::string& operand) {
        return instruction("mov.b32 %r0, " + operand).operands[1].kind;
    };
    CHECK(kind("%r8") == Kind::kRegister);
    CHECK(kind("%tid.x") == Kind::kSpecial);
    CHECK(kind("g") == Kind::kSymbol);
    CHECK(kind("x") == Kind::kSymbol);
    CHECK(kind("f") == Kind::kSymbol);
    CHECK(kind("7") == Kind::kInteger);
    CHECK(kind("0f3F800000") == Kind::kFloat32);
    CHECK(kind("1.5") == Kind::kFloat64);
    CHECK(instruction("mov.b32 %r0, %nctaid.z").operands[1].special == Special::kNctaid);
    CHECK(instruction("mov.b32 %r0, %nctaid.z").operands[1].component == 2);
    CHECK(instruction("mov.b32 %r0, %v.w").operands[1].component == 3);
    CHECK(instruction("mov.b32 %r0, %envreg31").operands[1].bits == 31);
    CHECK(instruction("mov.b64 %d0, %pm7_64").operands[1].special == Special::kPm64);
    CHECK(instruction("mov.b64 %d0, g+12").operands[1].offset == 12);
}

TEST_CASE("a scope's names hide those around it and end with it", "[ptx]") {
    auto statements = body("{ .reg .b32 g; mov.b32 g, 1; } mov.b32 %r1, g;");
    const auto& inner = std::get<Scope>(statements[0]);
    CHECK(std::get<Instruction>(inner.statements[1]).operands[0].kind == Kind::kRegister);
    CHECK(std::get<Instruction>(statements[1]).operands[1].kind == Kind::kSymbol);
}

TEST_CASE("types may stand among the modifiers", "[ptx]") {
    Instruction add = instruction("vadd.s32.u32.s32.sat %r0, %r1.b0, -%r2.h1");
    CHECK(add.types == std::vector{Type::kS32, Type::kU32, Type::kS32});
    CHECK(add.modifiers == std::vector{Modifier::kSat});
    CHECK(add.type_places == 0b0111);
    CHECK(add.operands[1].selector == "b0");
    CHECK(add.operands[2].minus);
    Instruction mma =
        instruction("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%r0,%r1},{%r2},{%r3},{%r4}");
    CHECK(mma.shape == Shape{16, 8, 4});
    CHECK(mma.types.size() == 4);
    CHECK(mma.type_places == 0);
}

TEST_CASE("addresses", "[ptx]") {
    auto address = [](const std::string& text) { return instruction("ld.b32 %r0, " + text).operands[1]; };
    CHECK(address("[%d0+-4]").offset == -4);
    CHECK(address("[%d0-4+1]").offset == -3);
    CHECK(address("[g+2*8]").offset == 16);
    CHECK(address("[g+2*8]").elements[0].offset == 0);
    CHECK(address("[g]").elements[0].kind == Kind::kSymbol);
    CHECK(address("[4096]").elements[0].bits == 4096);
    Operand texture = instruction("tex.2d.v4.f32.f32 {%r0,%r1,%r2,%r3}, [%d0, %d1, {%r4, %r5}]").operands[1];
    REQUIRE(texture.elements.size() == 3);
    CHECK(texture.elements[2].elements.size() == 2);
}

TEST_CASE("pairs, negations and sinks", "[ptx]") {
    Instruction set = instruction("setp.lt.and.s32 %p0|_, %r1, -5, !%p2");
    CHECK(set.operands[0].kind == Kind::kPair);
    CHECK(set.operands[0].elements[1].kind == Kind::kSink);
    CHECK(set.operands[2].bits == static_cast<uint64_t>(-5));
    CHECK(set.operands[3].negated);
}

TEST_CASE("a call has its results, target and arguments, given or not", "[ptx]") {
    auto operands = [](const std::string& text) { return instruction(text).operands; };
    auto whole = operands("call.uni (%r0), f, (%r1, 5)");
    REQUIRE(whole.size() == 3);
    CHECK(whole[0].elements.size() == 1);
    CHECK(whole[1].name == "f");
    CHECK(whole[2].elements[1].bits == 5);
    auto bare = operands("call f");
    REQUIRE(bare.size() == 3);
    CHECK(bare[0].elements.empty());
    CHECK(bare[2].elements.empty());
    auto statements = body(
        "q: .callprototype (.param .b32 _) _ (.param .align 8 .b8 _[12]); call (%r0), %d1, (%r2), q; ret;");
    const auto& prototype = std::get<Prototype>(statements[0]);
    CHECK(prototype.parameters[0].dimensions == std::vector<uint64_t>{12});
    const auto& indirect = std::get<Instruction>(statements[1]);
    REQUIRE(indirect.operands.size() == 4);
    CHECK(indirect.operands[1].kind == Kind::kRegister);
    CHECK(indirect.operands[3].kind == Kind::kLabel);
    CHECK(indirect.operands[3].name == "q");
}

TEST_CASE("labels may follow their use", "[ptx]") {
    auto statements = body("t: .branchtargets a, b; { bra a; } brx.idx %r0, t; a: b: ret;");
    CHECK(std::get<Targets>(statements[0]).targets == std::vector<std::string>{"a", "b"});
    CHECK(std::get<Instruction>(statements[2]).operands[1].kind == Kind::kLabel);
}

TEST_CASE("constant expressions are folded as in C", "[ptx]") {
    CHECK(constant("1 + 2 * 3 - 4 / 2 % 3") == 5);
    CHECK(constant("(1 << 4 | 3) ^ 0x1F & ~0") == 12);
    CHECK(constant("-7 / 2") == static_cast<uint64_t>(-3));
    CHECK(constant("-8 >> 1") == static_cast<uint64_t>(-4));
    CHECK(constant("(.u64)-8 >> 60") == 15);
    CHECK(constant("-1 < 0U ? 1 : 2") == 2);
    CHECK(constant("!0 && 3 || 0") == 1);
    CHECK(constant("017 + 0b11 + 0xA") == 28);
    CHECK(constant("WARP_SZ") == 32);
    CHECK(constant("7%4") == 3);
    CHECK(constant("0x8000000000000000 / -1") == 0);
    CHECK(constant("(.s64)0x8000000000000000 / -1") == 0x8000000000000000);
    CHECK(constant("1 << 64") == 0);
    CHECK(constant("1.5 * 2") == 0x4008000000000000);
    CHECK(constant("-1.5") == 0xBFF8000000000000);
    CHECK(constant("0dFFF0000000000000") == 0xFFF0000000000000);
    CHECK(constant("-0f3F800000") == 0xBF800000);
}

TEST_CASE("variables, their attributes and initialisers", "[ptx]") {
    Module module = parsed(
        ".visible .global .attribute(.managed) .align 8 .v2 .f32 a[2][3] = {{1.0, 0f40000000}, {2}};\n"
        ".extern .shared .b8 b[];\n.global .u64 c[2] = {generic(a)+4, 0xFF00(a+1)};\n"
        ".const .u32 d, e = 3;\n.global .samplerref s = {filter_mode = nearest, addr_mode_0 = 1};");
    REQUIRE(module.declarations.size() == 6);
    const auto& a = std::get<Variable>(module.declarations[0]);
    CHECK(a.linkage == Linkage::kVisible);
    CHECK(a.attributes == std::vector{Attribute{"managed", {}}});
    CHECK(a.alignment == 8);
    CHECK(a.vector == 2);
    CHECK(a.dimensions == std::vector<uint64_t>{2, 3});
    CHECK(a.initializer->elements[0].elements[1].kind == Initializer::Kind::kFloat32);
    CHECK(std::get<Variable>(module.declarations[1]).dimensions == std::vector<uint64_t>{0});
    const auto& c = *std::get<Variable>(module.declarations[2]).initializer;
    CHECK(c.elements[0].generic);
    CHECK(c.elements[0].offset == 4);
    CHECK(c.elements[1].mask == 0xFF00);
    CHECK(c.elements[1].name == "a");
    CHECK(!std::get<Variable>(module.declarations[3]).initializer);
    CHECK(std::get<Variable>(module.declarations[4]).space == Space::kConstant);
    CHECK(std::get<Variable>(module.declarations[5]).initializer->elements[0].name == "nearest");
}

TEST_CASE("functions: linkage, parameters, directives", "[ptx]") {
    Module module = parsed(
        ".weak .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24])\n"
        ".maxntid 128, 2\n.minnctapersm 3 .pragma \"nounroll\";\n{ ret; }\n.func (.reg .f32 r) q() "
        ".noreturn;\n.alias z, q;");
    const auto& kernel = std::get<Function>(module.declarations[0]);
    CHECK(kernel.kernel);
    CHECK(kernel.linkage == Linkage::kWeak);
    CHECK(kernel.parameters[0].pointer_space == Space::kGlobal);
    CHECK(kernel.parameters[0].pointer_alignment == 16);
    CHECK(kernel.parameters[0].alignment == 0);
    CHECK(kernel.find(Directive::Kind::kMaxntid)->values == std::vector<uint64_t>{128, 2});
    CHECK(kernel.find(Directive::Kind::kPragma)->texts == std::vector<std::string>{"nounroll"});
    CHECK(!kernel.find(Directive::Kind::kMaxnreg));
    const auto& other = std::get<Function>(module.declarations[1]);
    CHECK(!other.body);
    CHECK(other.results[0].space == Space::kRegister);
    CHECK(other.find(Directive::Kind::kNoreturn));
    CHECK(std::get<Alias>(module.declarations[2]).target == "q");
}

TEST_CASE("debug information is kept", "[ptx]") {
    Module module = parsed(
        ".entry k() {\n.loc 1 5 7, function_name $s+3, inlined_at 2 8 9\nret;\n}\n"
        ".file 1 \"C:\\a\", 12, 34\n.section .debug_str {\n$s: .b8 1 // text\n}");
    const auto& function = std::get<Function>(module.declarations[0]);
    const auto& location = std::get<Location>(function.body->statements[0]);
    CHECK(location.source_line == 5);
    CHECK(location.function_name == "$s");
    CHECK(location.function_offset == 3);
    CHECK(location.at_column == 9);
    CHECK(std::get<File>(module.declarations[1]).name == "C:\\a");
    CHECK(std::get<File>(module.declarations[1]).bytes == 34);
    CHECK(std::get<Section>(module.declarations[2]).text == "\n$s: .b8 1 // text\n");
}

TEST_CASE("a module's head", "[ptx]") {
    auto result = parse(std::string(".version 8.12\n.target sm_90a, debug\n\0\0", 38));
    const auto& module = std::get<Module>(result);
    CHECK(module.version_major == 8);
    CHECK(module.version_minor == 12);
    CHECK(module.target == std::vector<std::string>{"sm_90a", "debug"});
    CHECK(module.address_size == 32);
}

TEST_CASE("registers come in numbered ranges", "[ptx]") {
    CHECK(std::holds_alternative<Module>(
        parse(std::string(kHead) + ".entry k() { .reg .b32 %r1<5>; mov.b32 %r10, %r14; }")));
    CHECK(std::holds_alternative<Diagnostic>(
        parse(std::string(kHead) + ".entry k() { .reg .b32 %r<5>; mov.b32 %r5, 1; }")));
    CHECK(std::holds_alternative<Diagnostic>(
        parse(std::string(kHead) + ".entry k() { .reg .b32 %r<5>; mov.b32 %r01, 1; }")));
}

}  // namespace
}  // namespace smt::ptx
